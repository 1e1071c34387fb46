package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.tests.ChildJvm.Outcome;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What {@code nccl4j doctor} asks CUDA, without a GPU. */
class DoctorOnCudaTest {
    @Test
    void eachGpuAndPairOfGpusIsReported(@TempDir Path folder) throws IOException, ClassNotFoundException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        FakeCuda cuda = FakeCuda.build(folder);
        ChildJvm jvm = cuda.jvm(new ChildJvm())
                .environment("FAKE_CUDA_DEVICES", "3")
                .environment("FAKE_CUDA_MEMORY", "" + (5L << 30))
                .property("nccl4j.engine", "nccl")
                .property("nccl4j.library", cuda.nccl());
        Outcome outcome = jvm.run(Class.forName("io.github.nccl4j.tools.doctor.Probe"), "gpus");
        assertEquals(0, outcome.exitCode(), outcome::output);
        List<String> expected = List.of(
                "count\t3",
                "driver\t13010",
                "runtime\t13000",
                "gpu\t0\tFake GPU 0\t0000:1A:00.0\t9.5\t5368709120",
                "gpu\t1\tFake GPU 1\t0000:1B:00.0\t9.6\t5368709120",
                "gpu\t2\tFake GPU 2\t0000:1C:00.0\t9.7\t5368709120",
                "peer\t0\t1\t0",
                "peer\t0\t2\t0",
                "peer\t1\t0\t1",
                "peer\t1\t2\t0",
                "peer\t2\t0\t1",
                "peer\t2\t1\t1");
        assertTrue(outcome.output().contains(String.join("\n", expected)), outcome::output);
    }
}
