package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.ChildJvm.Running;
import io.github.nccl4j.tests.FakeCuda;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Processes that a launcher has started make a communicator, or all say why not. */
@Timeout(600)
class FromEnvironmentTest {
    private final int port = Ports.free();

    private static ChildJvm host() {
        return new ChildJvm().property("nccl4j.engine", "host");
    }

    private ChildJvm torchrun(ChildJvm jvm, int rank, int world) {
        return jvm.environment("RANK", "" + rank)
                .environment("WORLD_SIZE", "" + world)
                .environment("LOCAL_RANK", "" + rank)
                .environment("LOCAL_WORLD_SIZE", "" + world)
                .environment("MASTER_ADDR", "127.0.0.1")
                .environment("MASTER_PORT", "" + port);
    }

    /** Told what a script tells, and no local rank. */
    private ChildJvm script(ChildJvm jvm, int rank, int world) {
        return jvm.environment("RANK", "" + rank)
                .environment("WORLD_SIZE", "" + world)
                .environment("MASTER_ADDR", "127.0.0.1")
                .environment("MASTER_PORT", "" + port);
    }

    private ChildJvm openMpi(ChildJvm jvm, int rank, int world) {
        return jvm.environment("OMPI_COMM_WORLD_RANK", "" + rank)
                .environment("OMPI_COMM_WORLD_SIZE", "" + world)
                .environment("OMPI_COMM_WORLD_LOCAL_RANK", "" + rank)
                .environment("OMPI_COMM_WORLD_LOCAL_SIZE", "" + world)
                .environment("NCCL4J_STORE_PORT", "" + port);
    }

    private ChildJvm slurm(ChildJvm jvm, int rank, int world) {
        return jvm.environment("SLURM_PROCID", "" + rank)
                .environment("SLURM_STEP_ID", "0")
                .environment("SLURM_STEP_NUM_TASKS", "" + world)
                .environment("SLURM_LOCALID", "" + rank)
                .environment("SLURM_NODEID", "0")
                .environment("SLURM_STEP_TASKS_PER_NODE", "" + world)
                .environment("SLURM_STEP_NODELIST", "somewhere")
                .environment("NCCL4J_STORE_PORT", "" + port);
    }

    private static List<Outcome> run(int world, IntFunction<ChildJvm> rank) {
        return run(JobScenario.class, world, rank);
    }

    private static List<Outcome> run(Class<?> program, int world, IntFunction<ChildJvm> rank) {
        List<Running> running = new ArrayList<>();
        for (int r = 0; r < world; r++) {
            running.add(rank.apply(r).start(program));
        }
        return running.stream().map(Running::await).toList();
    }

    private static void assertSums(List<Outcome> ranks) {
        int world = ranks.size();
        int sum = world * (world + 1) / 2;
        for (int rank = 0; rank < world; rank++) {
            Outcome outcome = ranks.get(rank);
            assertEquals(0, outcome.exitCode(), outcome::output);
            assertTrue(
                    outcome.output().contains("rank " + rank + " of " + world + ": " + sum + " " + sum),
                    outcome::output);
            int again = world == 1 ? 0 : 3;
            assertEquals(again, outcome.output().split("again: " + sum, -1).length - 1, outcome::output);
        }
    }

    @Test
    void ranksOfTorchrunMeet() {
        assertSums(run(3, rank -> torchrun(host(), rank, 3)));
    }

    @Test
    void ranksOfAScriptMeet() {
        assertSums(run(3, rank -> script(host(), rank, 3)));
    }

    @Test
    void ranksOfOpenMpiMeet() {
        assertSums(run(2, rank -> openMpi(host(), rank, 2)));
    }

    @Test
    void ranksOfSlurmMeetWithASecret() {
        assertSums(run(2, rank -> slurm(host(), rank, 2)
                .environment("NCCL4J_STORE_SECRET", "sixteen bytes or more of secret")));
    }

    @Test
    void aProcessAloneIsARankOfItsOwn() {
        assertSums(run(1, rank -> host()));
    }

    /** The library is loaded in a thread of its own: what is wrong must come first in the caller's exception all the same. */
    @Test
    void missingNativeCodeIsNamed() {
        List<Outcome> ranks =
                run(2, rank -> torchrun(host().property("org.bytedeco.javacpp.platform", "linux-none"), rank, 2));
        for (Outcome outcome : ranks) {
            assertNotEquals(0, outcome.exitCode());
            String expected =
                    "in thread \"main\" io.github.nccl4j.highlevel.NcclLibraryException: nccl4j's native code for linux-none cannot "
                            + "be loaded. Add io.github.nccl4j:nccl-platform";
            assertTrue(outcome.output().contains(expected), outcome::output);
        }
    }

    /** What is wrong with a rank is known at once, even if there is nobody yet to tell it to. */
    @Test
    void rankWithoutRankZeroReportsItsOwnProblem() {
        Outcome outcome = torchrun(host().property("org.bytedeco.javacpp.platform", "linux-none"), 1, 2)
                .run(JobScenario.class);
        assertNotEquals(0, outcome.exitCode());
        assertTrue(outcome.output().contains("native code for linux-none cannot be loaded"), outcome::output);
        assertTrue(outcome.output().contains("Suppressed: "), outcome::output);
        // Not only at JobScenario's deadline.
        String reached = "rank 1 could not reach rank 0 at 127.0.0.1:" + port + " within 5 s";
        assertTrue(outcome.output().contains(reached), outcome::output);
    }

    @Test
    void aPartOfTheEnvironmentIsAnErrorAndNotOneRank() {
        Outcome outcome = host().environment("RANK", "1").run(JobScenario.class);
        assertNotEquals(0, outcome.exitCode());
        assertTrue(
                outcome.output().contains("rank information from torchrun (RANK=1) is incomplete, not set: WORLD_SIZE"),
                outcome::output);
    }

    @Test
    void allRanksLearnOfTwoRanksOnOneGpu(@TempDir Path folder) throws IOException {
        FakeCuda cuda = fake(folder);
        assertRanks0And2ShareAGpu(run(3, rank -> torchrun(onGpus(cuda, 2), rank, 3)));
    }

    /** Local ranks choose the GPUs: 0, 1 and 2 of one host with two GPUs; then 0 and 1 of one host, and 0 of another, with three. */
    @Test
    void gpuIsChosenByLocatedLocalRank(@TempDir Path folder) throws IOException {
        FakeCuda cuda = fake(folder);
        assertRanks0And2ShareAGpu(run(3, rank -> script(onGpus(cuda, 2), rank, 3)));
        assertRanks0And2ShareAGpu(run(3, rank -> script(onGpus(cuda, 3), rank, 3)
                .environment("NCCL_HOSTID", rank == 2 ? "second" : "first")));
    }

    /** Each rank has a GPU of its own, in a recovery and in a communicator that is created at a store. */
    @Test
    void gpuIsThatOfTheLocalRankAtAStore(@TempDir Path folder) throws IOException {
        FakeCuda cuda = fake(folder);
        List<Outcome> located = run(DeviceOfRankScenario.class, 2, rank -> torchrun(onGpus(cuda, 2), rank, 2));
        List<Outcome> unlocated = run(DeviceOfRankScenario.class, 2, rank -> script(onGpus(cuda, 2), rank, 2));
        for (int rank = 0; rank < 2; rank++) {
            String device = "CUDA device " + rank;
            assertLines(located.get(rank), "begin: " + device, "recover: " + device, "create: " + device);
            assertLines(located.get(rank), "of local rank: " + device + ", " + device);
            assertLines(unlocated.get(rank), "begin: " + device, "recover: " + device);
        }
    }

    private static void assertLines(Outcome outcome, String... lines) {
        assertEquals(0, outcome.exitCode(), outcome::output);
        for (String line : lines) {
            assertTrue(outcome.output().contains(line + "\n"), outcome::output);
        }
    }

    private static void assertRanks0And2ShareAGpu(List<Outcome> ranks) {
        for (Outcome outcome : ranks) {
            assertNotEquals(0, outcome.exitCode());
            String expected = "two ranks can't use one GPU: rank 0 and rank 2 both use"
                    + " GPU-00010203-0405-0607-0809-0a0b0c0d0e0f, CUDA device 0 of ";
            assertTrue(outcome.output().contains(expected), outcome::output);
        }
    }

    @Test
    void allRanksLearnOfDifferentEngines(@TempDir Path folder) throws IOException {
        FakeCuda cuda = fake(folder);
        List<Outcome> ranks = run(2, rank -> torchrun(rank == 0 ? onGpus(cuda, 1) : host(), rank, 2));
        for (Outcome outcome : ranks) {
            assertNotEquals(0, outcome.exitCode());
            String expected = "all ranks must use the same engine: rank 0 uses nccl, rank 1 uses host (host memory of ";
            assertTrue(outcome.output().contains(expected), outcome::output);
        }
    }

    @Test
    void rankWithoutGpuReportsToTheOthers(@TempDir Path folder) throws IOException {
        FakeCuda cuda = fake(folder);
        List<Outcome> ranks = run(2, rank -> torchrun(onGpus(cuda, rank == 0 ? 1 : 0), rank, 2));
        assertTrue(
                ranks.get(0).output().contains("rank 1 has aborted: rank 1 sees no CUDA device"), ranks.get(0)::output);
        assertTrue(ranks.get(1).output().contains(": rank 1 sees no CUDA device"), ranks.get(1)::output);
    }

    @Test
    void scriptRankWithoutGpuReportsToTheOthers(@TempDir Path folder) throws IOException {
        FakeCuda cuda = fake(folder);
        List<Outcome> ranks = run(2, rank -> script(onGpus(cuda, rank == 0 ? 1 : 0), rank, 2));
        assertTrue(
                ranks.get(0).output().contains("rank 1 has aborted: rank 1 sees no CUDA device"), ranks.get(0)::output);
        assertTrue(ranks.get(1).output().contains(": rank 1 sees no CUDA device"), ranks.get(1)::output);
    }

    private static FakeCuda fake(Path folder) throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        return FakeCuda.build(folder);
    }

    private static ChildJvm onGpus(FakeCuda cuda, int gpus) {
        try {
            return cuda.jvm(new ChildJvm())
                    .environment("FAKE_CUDA_DEVICES", "" + gpus)
                    .property("nccl4j.library", cuda.nccl());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
