package io.github.nccl4j.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.UniqueId;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tensors of ONNX Runtime as buffers, without a copy: those that the program makes of direct buffers. */
class OnnxRuntimeTest {
    private static final long[] SHAPE = {4};

    @Test
    void inputsAndOutputsAreUsedInPlace() throws Exception {
        ByteBuffer in = direct();
        ByteBuffer out = direct();
        in.asFloatBuffer().put(new float[] {1, 2, 3, 4});
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        try (OrtSession session = environment.createSession(identity(), new OrtSession.SessionOptions());
                OnnxTensor input = OnnxTensor.createTensor(environment, in.asFloatBuffer(), SHAPE);
                OnnxTensor output = OnnxTensor.createTensor(environment, out.asFloatBuffer(), SHAPE);
                Communicator communicator = Communicator.create(UniqueId.create(), 0, 1);
                CudaStream stream = CudaStream.nonBlocking(communicator.device());
                PreMulSum<Float32> triple = communicator.preMulSum(ElementType.FLOAT32, 3.0);
                DeviceBuffer<Float32> before = DeviceBuffer.wrap(ElementType.FLOAT32, in);
                DeviceBuffer<Float32> after = DeviceBuffer.wrap(ElementType.FLOAT32, out)) {
            communicator.allReduce(before, triple, stream);
            communicator.work(stream).await();
            session.run(Map.of("x", input), Map.of("y", output)).close();
            communicator.allReduce(after, triple, stream);
            communicator.work(stream).await();
            assertArrayEquals(new float[] {3, 6, 9, 12}, floats(input));
            assertArrayEquals(new float[] {9, 18, 27, 36}, floats(output));
        }
    }

    private static ByteBuffer direct() {
        return ByteBuffer.allocateDirect((int) SHAPE[0] * Float.BYTES).order(ByteOrder.nativeOrder());
    }

    /** A copy that ONNX Runtime makes of its tensor. */
    private static float[] floats(OnnxTensor tensor) {
        FloatBuffer copy = tensor.getFloatBuffer();
        float[] values = new float[copy.remaining()];
        copy.get(values);
        return values;
    }

    /** A model of one node, y = x, in the format of protocol buffers. */
    private static byte[] identity() {
        byte[] node = join(field(1, text("x")), field(2, text("y")), field(4, text("Identity")));
        byte[] graph = join(field(1, node), field(2, text("g")), field(11, value("x")), field(12, value("y")));
        return join(number(1, 8), field(7, graph), field(8, number(2, 13)));
    }

    private static byte[] value(String name) {
        byte[] shape = field(1, number(1, (int) SHAPE[0]));
        byte[] tensor = join(number(1, 1), field(2, shape));
        return join(field(1, text(name)), field(2, field(1, tensor)));
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** All numbers and lengths here are below 128. */
    private static byte[] number(int field, int value) {
        return new byte[] {(byte) (field << 3), (byte) value};
    }

    private static byte[] field(int field, byte[] content) {
        return join(new byte[] {(byte) (field << 3 | 2), (byte) content.length}, content);
    }

    private static byte[] join(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }
}
