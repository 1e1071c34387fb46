package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.assertContains;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tools.oracle.SmallFloat;
import io.github.nccl4j.tools.support.Checks;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.bytedeco.javacpp.Loader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Devices, buffers, streams and events on host memory, and what is said where CUDA is missing. */
class BuffersTest {
    @TempDir
    static Path folder;

    @Test
    void everythingWorksOnHostMemory() throws Exception {
        Checks checks = new Checks();
        new BufferSuite(Device.host(), checks).all();
        new AsyncCopySuite(Device.host(), checks).all();
        new GraphSuite(Device.host(), checks).all();
        assertTrue(checks.passed() > 500, () -> checks.passed() + " checks");
    }

    @Test
    void hostMemoryIsTheDeviceOfTheHostEngine() {
        Device device = Device.current();
        assertEquals(Device.host(), device);
        assertEquals(Device.host().hashCode(), device.hashCode());
        assertEquals("host memory", device.toString());
        assertTrue(device.isHost());
        assertFalse(device.isCuda());
        new Checks().fails(IllegalStateException.class, device::index, "no device index");
    }

    @Test
    void rejectsMissingDeviceWithDeviceCount() {
        int count = Device.cudaCount();
        Checks checks = new Checks();
        checks.fails(IndexOutOfBoundsException.class, () -> Device.cuda(-1), "-1 < 0");
        checks.fails(IndexOutOfBoundsException.class, () -> Device.cuda(count), count + " >= " + count);
    }

    @Test
    void smallFloatsAreRoundedAsTheTableSays() {
        check(ElementType.FLOAT16, new SmallFloat(5, 10, SmallFloat.Top.INFINITY));
        check(ElementType.BFLOAT16, new SmallFloat(8, 7, SmallFloat.Top.INFINITY));
        check(ElementType.FLOAT8E4M3, new SmallFloat(4, 3, SmallFloat.Top.SATURATING));
        check(ElementType.FLOAT8E5M2, new SmallFloat(5, 2, SmallFloat.Top.INFINITY));
    }

    private static void check(ElementType<? extends Element> type, SmallFloat oracle) {
        float[] values = decodeAll(type, oracle);
        List<Float> numbers = new ArrayList<>();
        for (int code = 0; code + 1 < values.length; code++) {
            around(values[code], numbers);
            // Half way between two codes.
            around((float) (((double) values[code] + values[code + 1]) / 2), numbers);
        }
        numbers.addAll(List.of(Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY));
        for (float edge : new float[] {464, 465, 479, 480, 512, 65504, 65519, 65520, 65536, 57344, 61439, 61440}) {
            numbers.add(edge);
            numbers.add(-edge);
        }
        numbers.addAll(List.of(Float.MAX_VALUE, Float.MIN_VALUE, -Float.MIN_VALUE, Float.MIN_NORMAL));
        Random random = new Random(7);
        for (int i = 0; i < 300_000; i++) {
            float number = Float.intBitsToFloat(random.nextInt());
            if (!Float.isNaN(number)) {
                numbers.add(number);
            }
            numbers.add((float) (random.nextGaussian() * Math.pow(2, random.nextInt(30) - 20)));
        }
        float[] all = new float[numbers.size()];
        for (int i = 0; i < all.length; i++) {
            all[i] = numbers.get(i);
        }
        int[] codes = encode(type, all);
        for (int i = 0; i < all.length; i++) {
            int expected = oracle.encode(all[i]);
            assertEquals(expected, codes[i], () -> type + " of a number, expected code " + expected);
        }
    }

    private static void around(float value, List<Float> numbers) {
        if (Float.isFinite(value)) {
            numbers.addAll(List.of(value, Math.nextUp(value), Math.nextDown(value)));
        }
    }

    /** What all codes mean; each must mean the same to the oracle. */
    private static float[] decodeAll(ElementType<? extends Element> type, SmallFloat oracle) {
        int size = type.sizeInBytes();
        int count = 1 << 8 * size;
        float[] values = new float[count];
        try (DeviceBuffer<?> buffer = Device.host().allocate(type, count)) {
            if (size == 1) {
                byte[] codes = new byte[count];
                for (int code = 0; code < count; code++) {
                    codes[code] = (byte) code;
                }
                buffer.copyFrom(codes);
            } else {
                short[] codes = new short[count];
                for (int code = 0; code < count; code++) {
                    codes[code] = (short) code;
                }
                buffer.copyFrom(codes);
            }
            buffer.copyTo(values);
        }
        for (int code = 0; code < count; code++) {
            int at = code;
            assertEquals(oracle.decode(code), values[code], () -> type + " code 0x" + Integer.toHexString(at));
        }
        return values;
    }

    private static int[] encode(ElementType<? extends Element> type, float[] numbers) {
        int[] codes = new int[numbers.length];
        try (DeviceBuffer<?> buffer = Device.host().allocate(type, numbers.length)) {
            buffer.copyFrom(numbers);
            if (type.sizeInBytes() == 1) {
                byte[] bytes = new byte[numbers.length];
                buffer.copyTo(bytes);
                for (int i = 0; i < codes.length; i++) {
                    codes[i] = bytes[i] & 0xff;
                }
            } else {
                short[] shorts = new short[numbers.length];
                buffer.copyTo(shorts);
                for (int i = 0; i < codes.length; i++) {
                    codes[i] = shorts[i] & 0xffff;
                }
            }
        }
        return codes;
    }

    @Test
    void doublesAreRoundedOnce() {
        short[] code = new short[1];
        try (DeviceBuffer<?> buffer = Device.host().allocate(ElementType.FLOAT16, 1)) {
            // As a float it would be 1 + 2^-11, half way between two codes, and go down to the even one.
            buffer.fill(1 + Math.pow(2, -11) + Math.pow(2, -40));
            buffer.copyTo(code);
            assertEquals(0x3c01, code[0]);
            buffer.fill(1 + Math.pow(2, -11));
            buffer.copyTo(code);
            assertEquals(0x3c00, code[0]);
        }
    }

    private static final String TWO_BUFFERS = """
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.highlevel.Element.*;
            class TwoBuffers {
                static <T extends Element> void allReduce(DeviceBuffer<T> send, DeviceBuffer<T> receive) {}
                static void use(Device device) {
                    DeviceBuffer<Float32> floats = device.allocate(ElementType.FLOAT32, 1024);
                    DeviceBuffer<%s> others = device.allocate(ElementType.%s, 1024);
                    %s;
                }
            }
            """;

    @Test
    void elementTypesCannotBeMixed() {
        assertEquals(
                List.of(),
                errors(String.format(Locale.ROOT, TWO_BUFFERS, "Float32", "FLOAT32", "allReduce(floats, others)")));
        assertEquals(
                List.of(),
                errors(String.format(Locale.ROOT, TWO_BUFFERS, "Int32", "INT32", "allReduce(others, others)")));
        for (String call : List.of("allReduce(floats, others)", "floats.copyFrom(others)", "floats = others")) {
            assertEquals(
                    1,
                    errors(String.format(Locale.ROOT, TWO_BUFFERS, "Float16", "FLOAT16", call))
                            .size(),
                    call);
        }
        assertEquals(
                1,
                errors(String.format(Locale.ROOT, TWO_BUFFERS, "Float16", "BFLOAT16", "allReduce(others, others)"))
                        .size());
    }

    private static List<String> errors(String source) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assumeTrue(compiler != null, "needs a JDK");
        DiagnosticCollector<JavaFileObject> diagnostics = new DiagnosticCollector<>();
        JavaFileObject file =
                new SimpleJavaFileObject(URI.create("string:///TwoBuffers.java"), JavaFileObject.Kind.SOURCE) {
                    @Override
                    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                        return source;
                    }
                };
        List<String> options =
                List.of("-proc:none", "-d", folder.toString(), "-classpath", System.getProperty("java.class.path"));
        compiler.getTask(null, null, diagnostics, options, null, List.of(file)).call();
        List<String> errors = new ArrayList<>();
        for (Diagnostic<?> diagnostic : diagnostics.getDiagnostics()) {
            if (diagnostic.getKind() == Diagnostic.Kind.ERROR) {
                errors.add(diagnostic.getMessage(null));
            }
        }
        return errors;
    }

    @Test
    void hostMemoryNeedsNothingOfCuda() {
        Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .environment("JAVA_TOOL_OPTIONS", "-Xlog:class+load")
                .run(BufferScenarios.class, "host");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertContains(outcome.output(), "checks passed on host memory", "io.github.nccl4j.highlevel.DeviceBuffer");
        assertFalse(outcome.output().contains("org.bytedeco.cuda.global"), "a class of CUDA's functions was loaded");
        assertFalse(outcome.output().contains("org.bytedeco.cuda.presets"), "JavaCPP's CUDA presets were loaded");
    }

    @Test
    void aDroppedBufferIsReportedWithItsStack() {
        ChildJvm jvm = new ChildJvm().property("nccl4j.engine", "host").property("nccl4j.leaks", true);
        Outcome outcome = jvm.run(BufferScenarios.class, "leak");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertContains(outcome.output(), "DeviceBuffer of 22 float32 on host memory", "dropSomething");
        assertFalse(outcome.output().contains("of 11 float32"), outcome.output());
        outcome = new ChildJvm().property("nccl4j.engine", "host").run(BufferScenarios.class, "leak");
        assertEquals("", outcome.output());
    }

    /** A driver that shows one device, for machines without one. */
    private static Path driver() throws IOException {
        Path library = folder.resolve("libcuda.so.1");
        if (!Files.exists(library)) {
            Path made = Cxx.library(folder, "cuda", """
                    extern "C" int cuInit(unsigned) { return 0; }
                    extern "C" int cuDeviceGetCount(int* count) { *count = 1; return 0; }
                    """);
            Files.move(made, library);
        }
        return library;
    }

    @Test
    void withoutNativesOfCudaTheArtifactIsNamed() throws IOException {
        ChildJvm jvm = new ChildJvm()
                .environment("LD_LIBRARY_PATH", driver().getParent().toString());
        Outcome outcome = jvm.run(BufferScenarios.class, "cuda");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertContains(
                outcome.output(),
                "devices 1",
                "exception The native code of JavaCPP Presets CUDA is not on the class path: add org.bytedeco:cuda with"
                        + " the classifier " + Loader.getPlatform(),
                "host memory works");
        assertEquals(2, outcome.output().split("exception The native code").length - 1, outcome.output());
    }

    @Test
    void withoutClassesOfCudaTheArtifactIsNamed() {
        Outcome outcome = new ChildJvm().withoutJars("cuda-").run(BufferScenarios.class, "host");
        assertEquals(1, outcome.exitCode(), outcome.output());
        assertContains(
                outcome.output(),
                "a class that nccl4j needs is not on the class path: org.bytedeco.cuda.",
                "Add org.bytedeco:javacpp and org.bytedeco:cuda");
    }

    @Test
    void missingRuntimeNamesEachCandidate() throws IOException {
        Path natives = Files.createDirectories(folder.resolve("natives"));
        Path inJar = Files.createDirectories(natives.resolve("org/bytedeco/cuda/" + Loader.getPlatform()));
        // Stands for the natives of JavaCPP Presets CUDA: it needs a runtime library that is not there.
        Path broken = Files.writeString(inJar.resolve("libjnicudart.so"), "needs libcudart.so.13");
        assertTrue(Files.exists(broken));
        Path home = Files.createDirectories(folder.resolve("toolkit"));
        Path environment = Files.createDirectories(folder.resolve("venv/lib/python3.11/site-packages"));
        ChildJvm jvm = new ChildJvm()
                .environment("LD_LIBRARY_PATH", driver().getParent().toString())
                .environment("CUDA_HOME", home.toString())
                .environment("VIRTUAL_ENV", folder.resolve("venv").toString())
                .property("org.bytedeco.javacpp.cachedir", folder.resolve("cache"));
        Outcome outcome = jvm.classPath(natives).run(BufferScenarios.class, "cuda");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertContains(
                outcome.output(),
                "exception CUDA can't be used: ",
                "libcudart.so.13 was searched for by the dynamic linker, ",
                home + "/lib64/libcudart.so.13",
                "/usr/local/cuda/lib64/libcudart.so.13",
                environment.toRealPath() + "/nvidia/cu13/lib/libcudart.so.13",
                environment.toRealPath() + "/nvidia/cuda_runtime/lib/libcudart.so.13",
                "Set CUDA_HOME or LD_LIBRARY_PATH",
                "host memory works");
        assertEquals(2, outcome.output().split("exception CUDA can't be used").length - 1, outcome.output());
    }
}
