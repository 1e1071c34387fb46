package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.CapturingScenario;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.FakeCuda;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Buffers, streams and events on CUDA devices, without a GPU: our side of each call to CUDA. */
class FakeCudaTest {
    @TempDir
    static Path folder;

    private static FakeCuda cuda;
    private static Path nccl;

    @BeforeAll
    static void build() throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        cuda = FakeCuda.build(folder.resolve("cuda"));
        nccl = cuda.nccl();
    }

    private static String run(String scenario) throws IOException {
        return run(FakeCudaScenarios.class, scenario);
    }

    private static String run(Class<?> scenario, String... arguments) throws IOException {
        Path failures = Files.writeString(folder.resolve("failures"), "");
        ChildJvm jvm = cuda.jvm(new ChildJvm())
                .environment("FAKE_CUDA_FAIL", "@" + failures)
                .property("fake.failures", failures)
                .property("nccl4j.library", nccl);
        Outcome outcome = jvm.run(scenario, arguments);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains(FakeCuda.NOTHING_LEFT), outcome::output);
        return outcome.output();
    }

    @Test
    void everythingWorksOnEachDevice() throws IOException {
        String output = run("suite");
        assertTrue(output.contains("checks passed on CUDA device 0"), output);
        assertTrue(output.contains("checks passed on CUDA device 1"), output);
    }

    @Test
    void theCallersDeviceIsAsBeforeAfterEveryCall() throws IOException {
        run("devices");
    }

    @Test
    void aCallThatFailsIsAnException() throws IOException {
        run("failures");
    }

    @Test
    void oneObjectStandsForADevice() throws IOException {
        run("identity");
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
    void aCaptureTellsWhoAsks() throws IOException {
        run(CapturingScenario.class);
    }
}
