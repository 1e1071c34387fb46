package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.CallGroupScenario;
import io.github.nccl4j.highlevel.CapturingScenario;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.FakeCuda;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Buffers, streams and events on CUDA devices, without a GPU: our side of each call to CUDA, through JavaCPP Presets for
 * CUDA 13, which nccl4j is compiled with, and for CUDA 12.
 */
@ParameterizedClass(name = "CUDA {0}")
@ValueSource(ints = {13, 12})
class FakeCudaTest {
    @TempDir
    static Path folder;

    /** By folder: each run of the class has its own. */
    private static final Map<Path, FakeCuda> BUILT = new HashMap<>();

    private final FakeCuda cuda;
    private final String presets;

    FakeCudaTest(int major) throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        Path libraries = folder.resolve("cuda" + major);
        if (!BUILT.containsKey(libraries)) {
            BUILT.put(libraries, FakeCuda.build(libraries, major));
        }
        cuda = BUILT.get(libraries);
        presets = major == 12 ? "cuda/12/cuda.jar" : "cuda-" + major;
    }

    private String run(String scenario) throws IOException {
        return run(FakeCudaScenarios.class, scenario);
    }

    private String run(Class<?> scenario, String... arguments) throws IOException {
        // JavaCPP refuses to allocate anything, as it may in a process with a GPU.
        ChildJvm limited = new ChildJvm()
                .property("org.bytedeco.javacpp.maxPhysicalBytes", 1)
                .property("org.bytedeco.javacpp.maxRetries", 0);
        return run(limited, scenario, arguments);
    }

    private String run(ChildJvm with, Class<?> scenario, String... arguments) throws IOException {
        Path failures = Files.writeString(folder.resolve("failures"), "");
        ChildJvm jvm = cuda.jvm(with)
                .environment("FAKE_CUDA_FAIL", "@" + failures)
                .property("fake.failures", failures)
                .property("nccl4j.library", cuda.nccl());
        Outcome outcome = jvm.run(scenario, arguments);
        assertEquals(0, outcome.exitCode(), () -> presets + ": " + outcome.output());
        assertTrue(outcome.output().contains(FakeCuda.NOTHING_LEFT), outcome::output);
        return outcome.output();
    }

    @Test
    void everythingWorksOnEachDevice() throws IOException {
        // It wraps pointers that JavaCPP has allocated.
        String output = run(new ChildJvm(), FakeCudaScenarios.class, "suite");
        assertTrue(output.contains("checks passed on CUDA device 0"), output);
        assertTrue(output.contains("checks passed on CUDA device 1"), output);
    }

    @Test
    void theCallersDeviceIsAsBeforeAfterEveryCall() throws IOException {
        run("devices");
    }

    @Test
    void operationsMakeNoContextOnAnotherDevice() throws IOException {
        run("operations");
    }

    @Test
    void aCallThatFailsIsAnException() throws IOException {
        run("failures");
    }

    @Test
    void oneObjectStandsForADevice() throws IOException {
        String output = run("identity");
        assertTrue(output.contains(presets), output);
    }

    @Test
    void asynchronousCopiesAreWorkInTheStream() throws IOException {
        run("async");
    }

    @Test
    void graphsKeepWhatTheyUse() throws IOException {
        run("graphs");
    }

    @Test
    void captureStateIsVisible() throws IOException {
        run(CapturingScenario.class);
    }

    @Test
    void operationsOfSeveralPartsMakeTheSameCallsAloneAndInAGroup() throws IOException {
        Path log = Files.writeString(folder.resolve("calls"), "");
        Outcome outcome = cuda.jvm(new ChildJvm())
                .environment("STUB_LOG", log.toString())
                .property("nccl4j.library", StubLibraries.logging(folder))
                .run(CallGroupScenario.class);
        assertEquals(0, outcome.exitCode(), outcome::output);
    }

    @Test
    void aWindowIsClosedWhenTheWorkOfItsDeviceIsDone() throws IOException {
        Path calls = Files.writeString(folder.resolve("calls"), "");
        Outcome outcome = cuda.jvm(new ChildJvm())
                .environment("STUB_CALLS", calls.toString())
                .property("nccl4j.library", StubLibraries.recording(folder, 23007))
                .run(FakeCudaScenarios.class, "windows");
        assertEquals(0, outcome.exitCode(), outcome::output);
        assertTrue(outcome.output().contains(FakeCuda.NOTHING_LEFT), outcome::output);
    }

    @Test
    void waitsForStreamsObeyTheCommunicator() throws IOException {
        Path hang = folder.resolve("hang");
        Files.deleteIfExists(hang);
        run(new ChildJvm().environment("FAKE_CUDA_HANG", hang.toString()), FakeCudaScenarios.class, "waits", hang + "");
    }

    @Test
    void aDroppedCommunicatorIsReported() throws IOException {
        Outcome outcome = cuda.jvm(new ChildJvm())
                .property("nccl4j.library", cuda.nccl())
                .run(FakeCudaScenarios.class, "dropped");
        assertEquals(0, outcome.exitCode(), outcome::output);
        String report = " (rank 0 of 1 on CUDA device 0) was dropped without being closed";
        assertTrue(outcome.output().contains(report), outcome::output);
    }

    /** NCCL's threads would use CUDA after its end. */
    @Test
    void theProcessEndsAfterACreation() throws IOException {
        Path begun = folder.resolve("begun");
        Files.deleteIfExists(begun);
        Outcome outcome = cuda.jvm(new ChildJvm())
                .environment("FAKE_NCCL_SLOW", begun.toString())
                .property("nccl4j.library", cuda.nccl())
                .run(FakeCudaScenarios.class, "exit", begun.toString());
        assertEquals(0, outcome.exitCode(), outcome::output);
        assertTrue(outcome.output().contains("fake CUDA left"), outcome::output);
        assertFalse(outcome.output().contains("libnccl ended during a creation"), outcome::output);
    }

    @Test
    void threadsDoNotDisturbEachOther() throws IOException {
        run("threads");
    }
}
