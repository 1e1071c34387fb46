package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclInterruptedException;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.NcclUsageException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tests.FakeCuda;
import io.github.nccl4j.tests.StubLibraries;
import io.github.nccl4j.tools.support.Threads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What ends although nobody asks: lost ranks, calls and work beyond the deadline, and calls of interrupted threads. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class WatchdogTest {
    private static final Duration LIMIT = Duration.ofSeconds(50);
    private static final Duration SOON = Duration.ofMillis(300);

    private static void allReduce(Communicator communicator) {
        try (DeviceBuffer<Int32> numbers = communicator.device().allocate(ElementType.INT32, 1)) {
            communicator.allReduce(numbers, ReduceOp.SUM, STREAM);
            communicator.work(STREAM).await();
        }
    }

    private static CommunicatorBuilder builder(boolean blocking) {
        return Communicator.builder()
                .config(CommunicatorConfig.builder()
                        .blocking(blocking)
                        .commName("watched")
                        .build());
    }

    /** Two ranks; the second is killed when the first does nothing. */
    private static void whenAnIdleRankLosesTheOther(CommunicatorBuilder builder, RankThreads.Body survivor)
            throws Exception {
        UniqueId id = UniqueId.create();
        ChildJvm.Running victim = CommunicatorFailuresTest.Victim.start(id, 1, 2);
        Communicator communicator = builder.create(id, 0, 2);
        try {
            allReduce(communicator);
            // A misuse is no failure of the communicator, after which the loss would not be reported.
            communicator.growId();
            assertThrows(NcclUsageException.class, communicator::growId);
            victim.process().destroyForcibly();
            survivor.run(communicator);
        } finally {
            communicator.abort();
            victim.await();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void findsKilledRankWithoutWaiters(boolean blocking) throws Exception {
        CompletableFuture<NcclException> told = new CompletableFuture<>();
        FailurePolicy policy = (communicator, failure) -> told.complete(failure);
        whenAnIdleRankLosesTheOther(builder(blocking).onFailure(policy), communicator -> {
            NcclRemoteException failure =
                    assertInstanceOf(NcclRemoteException.class, told.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
            assertTrue(failure.getMessage().contains("rank 1"), failure.getMessage());
            assertTrue(failure.getMessage().contains("ncclAllReduce of 1 int32 (operation 1)"), failure.getMessage());
            assertSame(failure, communicator.failure().orElseThrow());
            assertEquals(State.OPEN, communicator.state());
            assertThrows(NcclRemoteException.class, () -> allReduce(communicator));
            communicator.close();
        });
    }

    @Test
    void policyAbortsAndNextCallNamesTheReason() throws Exception {
        whenAnIdleRankLosesTheOther(builder(true).onFailure(FailurePolicy.ABORT), communicator -> {
            Waiting.until("end of the open state", () -> communicator.state() != State.OPEN);
            assertEquals(State.ABORTED, communicator.state());
            IllegalStateException ended = assertThrows(IllegalStateException.class, () -> allReduce(communicator));
            assertInstanceOf(NcclRemoteException.class, ended.getCause());
        });
    }

    /** Rank 1 does nothing before rank 0, which expects it, has got its exception. */
    private static void whenOneRankStaysAway(CommunicatorBuilder builder, RankThreads.Body waiting) throws Exception {
        CountDownLatch created = new CountDownLatch(2);
        CountDownLatch over = new CountDownLatch(1);
        RankThreads.run(2, builder, communicator -> {
            created.countDown();
            created.await();
            if (communicator.rank() == 0) {
                try {
                    waiting.run(communicator);
                } finally {
                    over.countDown();
                }
            } else {
                over.await();
            }
            communicator.abort();
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anOperationEndsAtTheDeadline(boolean blocking) throws Exception {
        List<NcclException> told = Collections.synchronizedList(new ArrayList<>());
        FailurePolicy policy = (communicator, failure) -> told.add(failure);
        whenOneRankStaysAway(builder(blocking).deadline(SOON).onFailure(policy), communicator -> {
            NcclTimeoutException failure = assertThrows(NcclTimeoutException.class, () -> allReduce(communicator));
            assertEquals("ncclAllReduce", failure.operation());
            assertTrue(failure.getMessage().contains("1 int32"), failure.getMessage());
            assertTrue(failure.getMessage().contains("0.3 s"), failure.getMessage());
            assertInstanceOf(NcclTimeoutException.class, told.get(0));
            assertSame(told.get(0), communicator.failure().orElseThrow());
        });
    }

    /** The watchdog calls it, and ends the call nevertheless; so it does for the next one. */
    @Test
    void anErrorOfThePolicyIsSuppressed() throws Exception {
        FailurePolicy policy = (communicator, failure) -> {
            throw new StackOverflowError("a failure of a test");
        };
        for (int i = 0; i < 2; i++) {
            whenOneRankStaysAway(builder(true).deadline(SOON).onFailure(policy), communicator -> {
                assertThrows(NcclTimeoutException.class, () -> allReduce(communicator));
                Throwable[] of = communicator.failure().orElseThrow().getSuppressed();
                assertInstanceOf(StackOverflowError.class, of[0]);
            });
        }
    }

    @Test
    void communicatorWithLateOperationCanBeShrunk() throws Exception {
        whenOneRankStaysAway(builder(true).deadline(SOON), communicator -> {
            assertThrows(NcclTimeoutException.class, () -> allReduce(communicator));
            Waiting.until("end of the open state", () -> communicator.state() != State.OPEN);
            assertEquals(State.REVOKED, communicator.state());
            try (Communicator rest = communicator.shrink(List.of(1), ShrinkFlag.ABORT)) {
                allReduce(rest);
            }
        });
    }

    @Test
    void aGroupEndsAtTheDeadline() throws Exception {
        whenOneRankStaysAway(builder(true).deadline(SOON), communicator -> {
            try (DeviceBuffer<Int32> numbers = communicator.device().allocate(ElementType.INT32, 1)) {
                NcclTimeoutException failure = assertThrows(
                        NcclTimeoutException.class,
                        () -> Group.run(() -> communicator.allReduce(numbers, ReduceOp.SUM, STREAM)));
                assertTrue(failure.getMessage().contains("0.3 s"), failure.getMessage());
            }
        });
    }

    @Test
    void withoutADeadlineAnOperationIsWaitedFor() throws Exception {
        RankThreads.run(2, builder(true).deadline(Communicator.NO_DEADLINE), communicator -> {
            if (communicator.rank() == 1) {
                Thread.sleep(200);
            }
            allReduce(communicator);
            assertTrue(communicator.failure().isEmpty());
        });
    }

    /** Interrupts the calling thread when it is in a call. */
    private static void interruptSoon(Communicator communicator) {
        Thread waiting = Thread.currentThread();
        Thread interrupter = new Thread(() -> {
            Waiting.until("end of the open state", () -> {
                if (communicator.state() != State.OPEN) {
                    return true;
                }
                waiting.interrupt();
                return false;
            });
        });
        interrupter.setDaemon(true);
        interrupter.start();
    }

    private static void assertInterrupted(Callable<?> call, Communicator communicator, String what) {
        interruptSoon(communicator);
        NcclInterruptedException failure = assertThrows(NcclInterruptedException.class, call::call);
        assertTrue(Thread.interrupted(), "the interrupt is kept");
        assertTrue(failure.getMessage().contains(what), failure.getMessage());
        assertEquals(State.ABORTED, communicator.state());
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anInterruptEndsAnOperation(boolean blocking) throws Exception {
        whenOneRankStaysAway(
                builder(blocking),
                communicator -> assertInterrupted(
                        () -> {
                            allReduce(communicator);
                            return null;
                        },
                        communicator,
                        "ncclAllReduce"));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anInterruptEndsASplit(boolean blocking) throws Exception {
        whenOneRankStaysAway(
                builder(blocking),
                communicator -> assertInterrupted(() -> communicator.split(0, 0), communicator, "ncclCommSplit"));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anInterruptEndsACreation(boolean blocking) throws Exception {
        UniqueId id = UniqueId.create();
        Thread.currentThread().interrupt();
        assertThrows(NcclInterruptedException.class, () -> builder(blocking).create(id, 0, 2));
        assertTrue(Thread.interrupted(), "the interrupt is kept");
        RankThreads.run(2, builder(blocking), WatchdogTest::allReduce);
    }

    @Test
    void abortsManyInParallel() throws Exception {
        List<Communicator> all = Communicator.createAll(Collections.nCopies(4, Device.host()));
        List<Callable<Void>> tasks = new ArrayList<>();
        CountDownLatch begun = new CountDownLatch(3);
        for (Communicator one : all.subList(0, 3)) {
            tasks.add(() -> {
                begun.countDown();
                assertThrows(RuntimeException.class, () -> allReduce(one));
                return null;
            });
        }
        tasks.add(() -> {
            begun.await();
            Communicator.abortAll(all);
            return null;
        });
        Threads.together(tasks, LIMIT);
        for (Communicator one : all) {
            assertEquals(State.ABORTED, one.state());
        }
        Communicator.abortAll(all);
        Communicator.abortAll(List.of());
        assertThrows(NullPointerException.class, () -> Communicator.abortAll(Arrays.asList(all.get(0), null)));
    }

    private static final String ERROR_IN_A_CALL = """
            #include <atomic>
            #include <cstddef>
            #include <unistd.h>
            #define API extern "C" int
            static std::atomic<bool> inside, aborted;
            struct Id { char bytes[128]; };
            API nccl4jHostEngineVersion() { return 1; }
            API ncclGetVersion(int* version) { *version = 22304; return 0; }
            extern "C" const char* ncclGetErrorString(int) { return "stub"; }
            extern "C" const char* ncclGetLastError(void*) { return ""; }
            API ncclGetUniqueId(Id*) { return 0; }
            API ncclCommInitRank(void** comm, int, Id, int) { *comm = &aborted; return 0; }
            API ncclCommGetAsyncError(void*, int* error) { *error = inside ? 2 : 0; return 0; }
            API ncclCommAbort(void*) { aborted = true; return 0; }
            API ncclAllReduce(const void*, void*, size_t, int, int, void*, void*) {
              inside = true;
              while (!aborted) usleep(1000);
              return 2;
            }
            """;

    /** The call does not return, although the library has found an error meanwhile. */
    @Test
    void anErrorDuringABlockedCallIsReported(@TempDir Path folder) throws IOException {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", Cxx.library(folder, "error_in_a_call", ERROR_IN_A_CALL))
                .run(BlockedCall.class);
        assertEquals(0, outcome.exitCode(), outcome.output());
        String told = "told: the work up to ncclAllReduce of 1 int32 (operation 1) failed";
        assertTrue(outcome.output().contains(told), outcome.output());
        assertTrue(outcome.output().contains("returned: ABORTED"), outcome.output());
    }

    /** In a JVM of its own, with that library. */
    static final class BlockedCall {
        private BlockedCall() {}

        public static void main(String[] args) {
            Communicator communicator = Communicator.builder()
                    .deadline(LIMIT)
                    .onFailure((failed, failure) -> {
                        System.out.println("told: "
                                + failure.getMessage().lines().findFirst().orElseThrow());
                        failed.abort();
                    })
                    .create(UniqueId.create(), 0, 1);
            assertThrows(RuntimeException.class, () -> allReduce(communicator));
            System.out.println("returned: " + communicator.state());
        }
    }

    /** Work that never ends, on a device that never says that it is done. */
    @Test
    void lateWorkIsFoundAndWaitingForItCanBeInterrupted(@TempDir Path folder) throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        FakeCuda cuda = FakeCuda.build(folder.resolve("cuda"));
        ChildJvm.Outcome outcome = cuda.jvm(new ChildJvm())
                .environment(
                        "STUB_CALLS", Files.createFile(folder.resolve("calls")).toString())
                .environment("FAKE_CUDA_FAIL", "cudaEventQuery=600")
                .property("nccl4j.library", StubLibraries.recording(folder, 23007))
                .run(LateWork.class);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(
                outcome.output().contains("late: Timed out after 0.3 s in ncclAllReduce of 1 int32 (operation 1)"),
                outcome.output());
        assertTrue(outcome.output().contains("0.3 s"), outcome.output());
        assertTrue(outcome.output().contains("interrupted true, ABORTED"), outcome.output());
        assertTrue(outcome.output().contains(FakeCuda.NOTHING_LEFT), outcome.output());
    }

    /** In a JVM of its own, where the device is a fake. */
    static final class LateWork {
        private LateWork() {}

        public static void main(String[] args) throws Exception {
            CompletableFuture<NcclException> told = new CompletableFuture<>();
            CommunicatorBuilder builder = Communicator.builder()
                    .device(Device.cuda(0))
                    .deadline(SOON)
                    .onFailure((communicator, failure) -> told.complete(failure));
            try (Communicator communicator = builder.create(UniqueId.create(), 0, 1);
                    DeviceBuffer<Int32> numbers = communicator.device().allocate(ElementType.INT32, 1)) {
                communicator.allReduce(numbers, ReduceOp.SUM, communicator.stream());
                assertNotNull(communicator.work(communicator.stream()));
                System.out.println(
                        "late: " + told.get(LIMIT.toSeconds(), TimeUnit.SECONDS).getMessage());
            }
            try (Communicator communicator = builder.deadline(LIMIT).create(UniqueId.create(), 0, 1);
                    DeviceBuffer<Int32> numbers = communicator.device().allocate(ElementType.INT32, 1)) {
                communicator.allReduce(numbers, ReduceOp.SUM, communicator.stream());
                Thread.currentThread().interrupt();
                try {
                    communicator.work(communicator.stream()).await();
                } catch (NcclInterruptedException e) {
                    System.out.println("interrupted " + Thread.interrupted() + ", " + communicator.state());
                }
            }
        }
    }

    @Test
    void aFailureOfTheDeviceIsReportedWhileNoThreadWaits(@TempDir Path folder) throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        FakeCuda cuda = FakeCuda.build(folder.resolve("cuda"));
        ChildJvm.Outcome outcome = cuda.jvm(new ChildJvm())
                .environment(
                        "STUB_CALLS", Files.createFile(folder.resolve("calls")).toString())
                .environment("FAKE_CUDA_FAIL", "cudaEventQuery=719")
                .property("nccl4j.library", StubLibraries.recording(folder, 23007))
                .run(LostDevice.class);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("told: cudaEventQuery failed"), outcome.output());
    }

    /** In a JVM of its own, where the device is a fake. */
    static final class LostDevice {
        private LostDevice() {}

        public static void main(String[] args) throws Exception {
            CompletableFuture<NcclException> told = new CompletableFuture<>();
            Communicator communicator = Communicator.builder()
                    .device(Device.cuda(0))
                    .onFailure((failed, failure) -> told.complete(failure))
                    .create(UniqueId.create(), 0, 1);
            DeviceBuffer<Int32> numbers = communicator.device().allocate(ElementType.INT32, 1);
            communicator.allReduce(numbers, ReduceOp.SUM, communicator.stream());
            assertNotNull(communicator.work(communicator.stream()));
            System.out.println(
                    "told: " + told.get(LIMIT.toSeconds(), TimeUnit.SECONDS).getMessage());
            // What is left cannot be closed without its events.
            Runtime.getRuntime().halt(0);
        }
    }
}
