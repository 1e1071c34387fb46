package consumer;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import java.util.HexFormat;

/** A program of a user: two processes all-reduce two numbers on the host engine. The first one starts the other. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0) {
            sum(UniqueId.of(HexFormat.of().parseHex(System.getenv("ID"))), 1);
            return;
        }
        UniqueId id = UniqueId.create();
        ProcessHandle.Info self = ProcessHandle.current().info();
        String[] command = self.arguments().orElseThrow();
        ProcessBuilder other = new ProcessBuilder(self.command().orElseThrow());
        for (String word : command) {
            other.command().add(word);
        }
        other.command().add("1");
        other.environment().put("ID", HexFormat.of().formatHex(id.toBytes()));
        Process rank1 = other.inheritIO().start();
        sum(id, 0);
        System.exit(rank1.waitFor());
    }

    private static void sum(UniqueId id, int rank) {
        Device device = Device.host();
        try (Communicator communicator = Communicator.builder().device(device).create(id, rank, 2);
                CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> data = device.allocate(ElementType.FLOAT32, 2)) {
            data.copyFrom(new float[] {1 + rank, 10});
            communicator.allReduce(data, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            float[] sum = new float[2];
            data.copyTo(sum);
            if (sum[0] != 3 || sum[1] != 20) {
                throw new IllegalStateException("3.0 20.0 expected: " + sum[0] + " " + sum[1]);
            }
            if (rank == 0) {
                System.out.println("2 ranks, sum " + sum[0] + " " + sum[1] + ", in "
                        + Communicator.class.getModule() + ", Java " + Runtime.version().feature());
            }
        }
    }
}
