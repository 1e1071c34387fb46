package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclInterruptedException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tests.FakeCuda;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks as virtual threads, more of them than there are carriers: none may hold a carrier while it waits for another. */
@Timeout(600)
class VirtualThreadsTest {
    private static final int RANKS = 8;
    private static final int CARRIERS = 2;
    private static final int COUNT = 1000;

    private static void requireVirtualThreads() {
        int version = Runtime.version().feature();
        assumeTrue(version >= 21, "needs Java 21 or newer, which has virtual threads: this is " + version);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "operations",
                "addresses",
                "groups",
                "exchange",
                "rows",
                "signals",
                "streams",
                "events",
                "splits",
                "interrupt",
                "deadline"
            })
    void moreRanksThanCarriersMakeProgress(String what) {
        requireVirtualThreads();
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .property("jdk.virtualThreadScheduler.parallelism", CARRIERS)
                .property("jdk.virtualThreadScheduler.maxPoolSize", CARRIERS)
                .run(Ranks.class, what);
        assertEquals(0, outcome.exitCode(), outcome::output);
        assertTrue(outcome.output().contains("all is well"), outcome::output);
    }

    /** NCCL's call does not return, as where it connects ranks that have no carrier; nothing can be done about that. */
    @Test
    void messageNamesRankThatPinsItsCarrier(@TempDir Path folder) throws IOException {
        requireVirtualThreads();
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        FakeCuda cuda = FakeCuda.build(folder.resolve("cuda"));
        ChildJvm.Outcome outcome = cuda.jvm(new ChildJvm())
                .property("nccl4j.library", Cxx.library(folder, "nccl_that_waits", WAITING_NCCL))
                .property("jdk.virtualThreadScheduler.parallelism", CARRIERS)
                .run(OnGpu.class);
        assertTrue(outcome.output().contains("NcclTimeoutException"), outcome::output);
        assertTrue(
                outcome.output()
                        .contains("the rank is a virtual thread, which holds its carrier while it waits in NCCL, and"
                                + " this process has 2 carriers (jdk.virtualThreadScheduler.parallelism): with more ranks in virtual"
                                + " threads, give each a platform thread"),
                outcome::output);
        assertEquals(0, outcome.exitCode(), outcome::output);
    }

    private static final String WAITING_NCCL = """
            #include <atomic>
            #include <cstddef>
            #include <unistd.h>
            static std::atomic<bool> aborted;
            struct Id { char bytes[128]; };
            extern "C" int ncclGetVersion(int* version) { *version = 22304; return 0; }
            extern "C" const char* ncclGetErrorString(int) { return "remote error"; }
            extern "C" const char* ncclGetLastError(void*) { return ""; }
            extern "C" int ncclGetUniqueId(Id*) { return 0; }
            extern "C" int ncclCommInitRank(void** comm, int, Id, int) { *comm = &aborted; return 0; }
            extern "C" int ncclCommGetAsyncError(void*, int* error) { *error = 0; return 0; }
            extern "C" int ncclCommAbort(void*) { aborted = true; return 0; }
            extern "C" int ncclAllReduce(const void*, void*, size_t, int, int, void*, void*) {
              while (!aborted) usleep(1000);
              return 6;
            }
            """;

    /** A virtual thread in NCCL. */
    public static final class OnGpu {
        public static void main(String[] args) throws Exception {
            Ranks.startVirtual(() -> {
                        Device device = Device.cuda(0);
                        try (Communicator communicator = Communicator.builder()
                                        .device(device)
                                        .deadline(Duration.ofSeconds(1))
                                        .create(UniqueId.create(), 0, 2);
                                CudaStream stream = CudaStream.nonBlocking(device);
                                DeviceBuffer<Int32> data = device.allocate(ElementType.INT32, 1)) {
                            communicator.allReduce(data, ReduceOp.SUM, stream);
                        } catch (RuntimeException failure) {
                            failure.printStackTrace(System.out);
                        }
                    })
                    .join();
        }
    }

    /** What a rank does, with buffers of its own. */
    @FunctionalInterface
    private interface Body {
        void run(Communicator communicator, DeviceBuffer<Int32> data, DeviceBuffer<Int32> other, CudaStream stream)
                throws Exception;
    }

    /** Runs ranks as virtual threads. */
    public static final class Ranks {
        private static final Duration DEADLINE = Duration.ofSeconds(15);
        private static final CudaStream DEFAULT = CudaStream.defaultOf(Device.host());

        public static void main(String[] args) throws Exception {
            switch (args[0]) {
                case "operations" -> run(DEADLINE, Ranks::sumTwice);
                case "addresses" ->
                    run(DEADLINE, (communicator, data, other, stream) -> {
                        fill(data, communicator.rank());
                        communicator
                                .onAddresses()
                                .allReduce(
                                        data.address(), other.address(), COUNT, DataType.INT32, ReduceOp.SUM, stream);
                        expect(other, RANKS * (RANKS - 1) / 2);
                    });
                case "groups" ->
                    run(DEADLINE, (communicator, data, other, stream) -> {
                        fill(data, communicator.rank());
                        fill(other, 1);
                        Group.run(() -> {
                            communicator.allReduce(data, ReduceOp.SUM, stream);
                            communicator.broadcast(other, 3, stream);
                        });
                        expect(data, RANKS * (RANKS - 1) / 2);
                        expect(other, 1);
                    });
                case "exchange" ->
                    run(DEADLINE, (communicator, data, other, stream) -> {
                        int rank = communicator.rank();
                        for (int round = 0; round < 20; round++) {
                            fill(data, rank + round);
                            Group.run(() -> {
                                communicator.send(data, (rank + 1) % RANKS, stream);
                                communicator.recv(other, (rank + RANKS - 1) % RANKS, stream);
                            });
                            expect(other, (rank + RANKS - 1) % RANKS + round);
                        }
                    });
                case "rows" ->
                    run(DEADLINE, (communicator, data, other, stream) -> {
                        fill(data, communicator.rank());
                        long[] counts = new long[RANKS];
                        long[] displacements = new long[RANKS];
                        Arrays.fill(counts, 1);
                        Arrays.setAll(displacements, peer -> peer);
                        communicator.allToAllv(data, counts, displacements, other, counts, displacements, stream);
                        int[] got = new int[COUNT];
                        other.copyTo(got);
                        for (int peer = 0; peer < RANKS; peer++) {
                            if (got[peer] != peer) {
                                throw new AssertionError("from rank " + peer + ": " + got[peer]);
                            }
                        }
                    });
                case "signals" ->
                    run(DEADLINE, (communicator, data, other, stream) -> {
                        int rank = communicator.rank();
                        // Each waits for the one before it, the first for nobody.
                        if (rank > 0) {
                            communicator.waitSignal(rank - 1, stream);
                        }
                        if (rank < RANKS - 1) {
                            communicator.signal(rank + 1, stream);
                        }
                        sumTwice(communicator, data, other, stream);
                    });
                case "streams" ->
                    run(DEADLINE, (communicator, data, other, stream) -> {
                        try (CudaStream created = CudaStream.nonBlocking(Device.host())) {
                            fill(data, communicator.rank());
                            communicator.allReduce(data, other, ReduceOp.SUM, created);
                            created.synchronize();
                            expect(other, RANKS * (RANKS - 1) / 2);
                        }
                    });
                case "events" ->
                    run(DEADLINE, (communicator, data, other, stream) -> {
                        try (CudaStream created = CudaStream.nonBlocking(Device.host());
                                CudaEvent event = CudaEvent.create(Device.host())) {
                            fill(data, communicator.rank());
                            communicator.allReduce(data, ReduceOp.SUM, created);
                            event.record(created);
                            if (communicator.rank() % 2 == 0) {
                                event.synchronize();
                            }
                            stream.waitFor(event);
                            communicator.allReduce(data, other, ReduceOp.MAX, stream);
                            expect(other, RANKS * (RANKS - 1) / 2);
                        }
                    });
                case "splits" ->
                    run(DEADLINE, (communicator, data, other, stream) -> {
                        try (Communicator half = communicator.split(communicator.rank() % 2, communicator.rank())) {
                            fill(data, 1);
                            half.allReduce(data, ReduceOp.SUM, stream);
                            expect(data, RANKS / 2);
                        }
                    });
                case "interrupt" -> interrupt();
                case "deadline" -> deadline();
                default -> throw new IllegalArgumentException(args[0]);
            }
            System.out.println("all is well");
            System.exit(0);
        }

        private static void sumTwice(
                Communicator communicator, DeviceBuffer<Int32> data, DeviceBuffer<Int32> other, CudaStream stream) {
            for (int round = 0; round < 20; round++) {
                fill(data, communicator.rank() + round);
                communicator.allReduce(data, other, ReduceOp.SUM, stream);
                expect(other, RANKS * (RANKS - 1) / 2 + RANKS * round);
                communicator.allReduce(data, ReduceOp.MAX, stream);
                expect(data, RANKS - 1 + round);
            }
        }

        private static void fill(DeviceBuffer<Int32> buffer, int value) {
            int[] values = new int[COUNT];
            Arrays.fill(values, value);
            buffer.copyFrom(values);
        }

        private static void expect(DeviceBuffer<Int32> buffer, int value) {
            int[] got = new int[COUNT];
            buffer.copyTo(got);
            if (!Arrays.stream(got).allMatch(one -> one == value)) {
                throw new AssertionError("expected " + value + ", got " + got[0]);
            }
        }

        /** Thread.startVirtualThread, which this code's Java does not have. */
        private static Thread startVirtual(Runnable body) throws ReflectiveOperationException {
            return (Thread)
                    Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body);
        }

        private static void run(Duration deadline, Body body) throws Exception {
            Queue<Throwable> failures = run(deadline, RANKS, body);
            if (!failures.isEmpty()) {
                failures.forEach(Throwable::printStackTrace);
                System.exit(1);
            }
        }

        private static Queue<Throwable> run(Duration deadline, int started, Body body) throws Exception {
            UniqueId id = UniqueId.create();
            Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
            CountDownLatch ended = new CountDownLatch(started);
            for (int r = 0; r < started; r++) {
                int rank = r;
                startVirtual(() -> {
                    try (Communicator communicator = Communicator.builder()
                                    .device(Device.host())
                                    .deadline(deadline)
                                    .create(id, rank, RANKS);
                            DeviceBuffer<Int32> data = Device.host().allocate(ElementType.INT32, COUNT);
                            DeviceBuffer<Int32> other = Device.host().allocate(ElementType.INT32, COUNT)) {
                        body.run(communicator, data, other, DEFAULT);
                    } catch (Throwable failure) {
                        failures.add(failure);
                    } finally {
                        ended.countDown();
                    }
                });
            }
            if (!ended.await(50, TimeUnit.SECONDS)) {
                throw new AssertionError(ended.getCount() + " ranks have not ended; " + failures);
            }
            return failures;
        }

        /** Rank 0 is interrupted while it waits for the others, which hear of it. */
        private static void interrupt() throws Exception {
            CountDownLatch interrupted = new CountDownLatch(1);
            long[] took = new long[1];
            Queue<Throwable> failures = run(DEADLINE, RANKS, (communicator, data, other, stream) -> {
                if (communicator.rank() > 0) {
                    interrupted.await();
                    communicator.abort();
                    return;
                }
                Thread rank = Thread.currentThread();
                new Thread(() -> {
                            try {
                                Thread.sleep(500);
                            } catch (InterruptedException e) {
                                throw new IllegalStateException(e);
                            }
                            took[0] = System.nanoTime();
                            rank.interrupt();
                        })
                        .start();
                try {
                    communicator.allReduce(data, ReduceOp.SUM, stream);
                } finally {
                    took[0] = System.nanoTime() - took[0];
                    if (!Thread.interrupted()) {
                        System.out.println("the interrupt is lost");
                        System.exit(1);
                    }
                    interrupted.countDown();
                }
            });
            if (failures.size() != 1 || !(failures.peek() instanceof NcclInterruptedException) || took[0] > 5e9) {
                System.out.println("after " + took[0] + " ns: " + failures);
                System.exit(1);
            }
        }

        /** The last rank does not come; the others are told at their deadline. */
        private static void deadline() throws Exception {
            CountDownLatch told = new CountDownLatch(RANKS - 1);
            Queue<Throwable> failures = run(Duration.ofSeconds(4), RANKS, (communicator, data, other, stream) -> {
                if (communicator.rank() == RANKS - 1) {
                    told.await();
                    communicator.abort();
                    return;
                }
                try {
                    communicator.allReduce(data, ReduceOp.SUM, stream);
                } finally {
                    told.countDown();
                    communicator.abort();
                }
            });
            if (failures.size() != RANKS - 1
                    || failures.stream().noneMatch(failure -> failure instanceof NcclTimeoutException)) {
                failures.forEach(Throwable::printStackTrace);
                System.exit(1);
            }
        }
    }
}
