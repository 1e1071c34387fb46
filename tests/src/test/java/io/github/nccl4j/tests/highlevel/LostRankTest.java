package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.TcpStoreServer;
import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.FakeCuda;
import io.github.nccl4j.tests.StubLibraries;
import io.github.nccl4j.tests.launch.Job;
import io.github.nccl4j.tests.launch.Proxy;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Loss of a rank that only the store reports: everything that waits for the communicator ends. In the first tests the ranks are
 * threads, and the connection of the last one to the store is cut, of which the host engine notices nothing; in the others they are
 * processes with a library that reports nothing, as NCCL over NVLink.
 */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class LostRankTest {
    private static final int SIZE = 3;
    private static final int LAST = SIZE - 1;

    private final Job job = new Job();
    private Proxy proxy;
    private final CountDownLatch waiting = new CountDownLatch(LAST);
    private final CountDownLatch over = new CountDownLatch(LAST);

    @AfterEach
    void end() throws Exception {
        if (proxy != null) {
            proxy.close();
        }
        job.close();
    }

    /** What a rank does. */
    private interface Body {
        void run(TcpStore store) throws Exception;
    }

    /** Runs the body in all ranks but the last, and cuts the connection of the last one when they are about to wait. */
    private void whenTheLastIsLost(Body body, Body last) throws Exception {
        List<CompletableFuture<TcpStore>> opening = new ArrayList<>();
        opening.add(job.openAsync(job.rank(0, SIZE), Job.settings()));
        opening.add(job.openAsync(job.rank(1, SIZE), Job.settings()));
        proxy = new Proxy(job.port());
        opening.add(job.openAsync(job.rankVia(proxy, LAST, SIZE), Job.settings()));
        List<CompletableFuture<Void>> ranks = new ArrayList<>();
        for (CompletableFuture<TcpStore> store : opening) {
            TcpStore own = store.join();
            ranks.add(job.start(() -> {
                if (own.rank() == LAST) {
                    last.run(own);
                } else {
                    try {
                        body.run(own);
                    } finally {
                        over.countDown();
                    }
                }
                return null;
            }));
        }
        waiting.await();
        proxy.cut();
        for (CompletableFuture<Void> rank : ranks) {
            rank.join();
        }
    }

    private static Communicator create(TcpStore store, CommunicatorBuilder builder) {
        return builder.device(Device.host()).create(store.scope("all"));
    }

    /** As the other method, with a builder for each rank; all ranks have a communicator, of which the last one makes no use. */
    private void whenTheLastIsLost(Supplier<CommunicatorBuilder> builder, RankThreads.Body body) throws Exception {
        whenTheLastIsLost(
                store -> {
                    Communicator communicator = create(store, builder.get());
                    try {
                        body.run(communicator);
                    } finally {
                        over.countDown();
                        over.await();
                        communicator.abort();
                    }
                },
                store -> {
                    Communicator communicator = create(store, Communicator.builder());
                    over.await();
                    communicator.abort();
                });
    }

    private static void assertNamed(Throwable failure) {
        NcclRemoteException remote = assertInstanceOf(NcclRemoteException.class, failure);
        assertTrue(
                remote.getMessage()
                        .contains("The store reports: rank 2 (127.0.0.1, process "
                                + ProcessHandle.current().pid() + ") is lost: its connection to the store has ended"),
                remote.getMessage());
        assertEquals(List.of(LAST), remote.lostRanks());
    }

    private static void allReduce(Communicator communicator, DeviceBuffer<Int32> numbers, CudaStream stream) {
        communicator.allReduce(numbers, ReduceOp.SUM, stream);
        communicator.work(stream).await();
    }

    @Test
    void waitForWorkEnds() throws Exception {
        whenTheLastIsLost(Communicator::builder, communicator -> {
            try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                    DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 1)) {
                communicator.allReduce(numbers, ReduceOp.SUM, stream);
                waiting.countDown();
                NcclRemoteException failure = assertThrows(
                        NcclRemoteException.class,
                        () -> communicator.work(stream).await());
                assertNamed(failure);
                assertTrue(failure.getMessage().startsWith("ncclAllReduce of 1 int32 (operation 1) failed at rank "));
                assertEquals(failure, communicator.failure().orElseThrow());
                // As at a deadline, the program decides what becomes of the communicator.
                assertEquals(State.OPEN, communicator.state());
                communicator.abort();
            }
        });
    }

    @Test
    void futureEnds() throws Exception {
        whenTheLastIsLost(Communicator::builder, communicator -> {
            try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                    DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 1)) {
                communicator.allReduce(numbers, ReduceOp.SUM, stream);
                waiting.countDown();
                assertNamed(assertThrows(
                                CompletionException.class,
                                communicator.work(stream).toFuture()::join)
                        .getCause());
                communicator.abort();
            }
        });
    }

    @Test
    void callInLibraryEnds() throws Exception {
        CountDownLatch revoked = new CountDownLatch(1);
        whenTheLastIsLost(Communicator::builder, communicator -> {
            try (DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 1)) {
                waiting.countDown();
                assertNamed(assertThrows(
                        NcclRemoteException.class, () -> communicator.allReduce(numbers, ReduceOp.SUM, STREAM)));
                // The revocation of one rank ends the call of the other, too.
                Waiting.until("revocation of both", () -> {
                    if (communicator.state() == State.REVOKED) {
                        revoked.countDown();
                    }
                    return revoked.getCount() == 0;
                });
            }
        });
    }

    /** Its send and its receive are a group of the library, which fails as one. */
    @Test
    void exchangeEnds() throws Exception {
        whenTheLastIsLost(Communicator::builder, communicator -> {
            int last = communicator.size() - 1;
            try (DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 1);
                    DeviceBuffer<Int32> received = Device.host().allocate(ElementType.INT32, 1)) {
                waiting.countDown();
                assertNamed(assertThrows(
                        NcclRemoteException.class, () -> communicator.sendRecv(numbers, last, received, last, STREAM)));
            }
        });
    }

    @Test
    void splitEnds() throws Exception {
        whenTheLastIsLost(Communicator::builder, communicator -> {
            waiting.countDown();
            assertNamed(assertThrows(NcclRemoteException.class, () -> communicator.split(0, 0)));
        });
    }

    /** The policy is called, and the failure is kept, although no thread waits. */
    @Test
    void lossIsReportedWithoutWaiters() throws Exception {
        CompletableFuture<NcclException> told = new CompletableFuture<>();
        FailurePolicy policy = (communicator, failure) -> told.complete(failure);
        whenTheLastIsLost(() -> Communicator.builder().onFailure(policy), communicator -> {
            waiting.countDown();
            assertNamed(told.get(Job.LONG.toSeconds(), TimeUnit.SECONDS));
            assertEquals(State.OPEN, communicator.state());
        });
    }

    /** A call that begins only after the report waits for the lost rank as well. */
    @Test
    void callAfterTheReportEnds() throws Exception {
        CompletableFuture<NcclException> told = new CompletableFuture<>();
        FailurePolicy policy = (communicator, failure) -> told.complete(failure);
        whenTheLastIsLost(
                () -> Communicator.builder().onFailure(policy).deadline(Duration.ofSeconds(20)), communicator -> {
                    waiting.countDown();
                    if (communicator.rank() == 0) {
                        assertNamed(told.get(Job.LONG.toSeconds(), TimeUnit.SECONDS));
                        try (DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 1)) {
                            assertNamed(assertThrows(
                                    NcclRemoteException.class,
                                    () -> communicator.allReduce(numbers, ReduceOp.SUM, STREAM)));
                        }
                    }
                });
    }

    @Test
    void policyAborts() throws Exception {
        whenTheLastIsLost(() -> Communicator.builder().onFailure(FailurePolicy.ABORT), communicator -> {
            waiting.countDown();
            Waiting.until("end of the open state", () -> communicator.state() != State.OPEN);
            assertEquals(State.ABORTED, communicator.state());
        });
    }

    /** A rendezvous of a rank that does not go on after the exchange of the id. */
    private record Stuck(Rendezvous whole, Runnable exchanged, CountDownLatch until) implements Rendezvous {
        @Override
        public int rank() {
            return whole.rank();
        }

        @Override
        public int size() {
            return whole.size();
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            return whole.gather(key, value, timeout);
        }

        @Override
        public byte[] broadcast(String key, int root, Supplier<byte[]> value, Duration timeout) {
            byte[] id = whole.broadcast(key, root, value, timeout);
            exchanged.run();
            try {
                until.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            throw new IllegalStateException("stuck with " + id.length + " bytes");
        }

        @Override
        public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
            return whole.inquiry(topic, answer);
        }

        @Override
        public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
            return whole.membership(group, number, onLoss);
        }

        @Override
        public void close() {
            // The store is closed by its owner.
        }
    }

    private void cutNow() {
        for (int rank = 0; rank < LAST; rank++) {
            waiting.countDown();
        }
    }

    @Test
    void creationEnds() throws Exception {
        whenTheLastIsLost(
                store -> {
                    Rendezvous all = store.scope("all");
                    NcclException failure = assertThrows(
                            NcclException.class,
                            () -> Communicator.builder().device(Device.host()).create(all));
                    if (failure instanceof NcclRemoteException) {
                        assertNamed(failure);
                    } else {
                        assertTrue(failure.getMessage().contains("rank 2"), failure.getMessage());
                    }
                },
                store -> assertThrows(IllegalStateException.class, () -> Communicator.builder()
                        .device(Device.host())
                        .create(new Stuck(store.scope("all"), this::cutNow, over))));
    }

    /** A rendezvous that counts the groups that its rank enters and leaves. */
    private record Counting(Rendezvous whole, AtomicInteger entered, AtomicInteger left) implements Rendezvous {
        Counting(Rendezvous whole) {
            this(whole, new AtomicInteger(), new AtomicInteger());
        }

        @Override
        public int rank() {
            return whole.rank();
        }

        @Override
        public int size() {
            return whole.size();
        }

        @Override
        public List<byte[]> gather(String key, byte[] value, Duration timeout) {
            return whole.gather(key, value, timeout);
        }

        @Override
        public byte[] broadcast(String key, int root, Supplier<byte[]> value, Duration timeout) {
            return whole.broadcast(key, root, value, timeout);
        }

        @Override
        public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
            Membership own = whole.membership(group, number, onLoss).orElseThrow();
            entered.incrementAndGet();
            AtomicBoolean open = new AtomicBoolean(true);
            return Optional.of(new Membership() {
                @Override
                public Map<Integer, Duration> silent() {
                    return own.silent();
                }

                @Override
                public void close() {
                    own.close();
                    if (open.getAndSet(false)) {
                        left.incrementAndGet();
                    }
                }
            });
        }

        @Override
        public void close() {
            // The store is closed by its owner.
        }
    }

    /** A rank whose creation failed may end without being reported as lost. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void failedCreationLeavesAllGroups(boolean blocking) throws Exception {
        CompletableFuture<TcpStore> opening = job.openAsync(job.rank(0, 2), Job.settings());
        TcpStore absent = job.openAsync(job.rank(1, 2), Job.settings()).join();
        TcpStore waiter = opening.join();
        CountDownLatch failed = new CountDownLatch(1);
        Counting ofWaiter = new Counting(waiter.scope("all"));
        Counting ofAbsent = new Counting(new Stuck(absent.scope("all"), () -> {}, failed));
        CompletableFuture<Void> other = job.start(() -> {
            assertThrows(
                    IllegalStateException.class,
                    () -> Communicator.builder().device(Device.host()).create(ofAbsent));
            return null;
        });
        try {
            assertThrows(NcclTimeoutException.class, () -> Communicator.builder()
                    .device(Device.host())
                    .config(CommunicatorConfig.builder().blocking(blocking).build())
                    .deadline(Duration.ofSeconds(2))
                    .create(ofWaiter));
        } finally {
            failed.countDown();
        }
        other.join();
        // The group of the creation, and that of the communicator.
        assertEquals(2, ofWaiter.entered().get());
        assertEquals(2, ofWaiter.left().get());
        assertEquals(1, ofAbsent.entered().get());
        assertEquals(1, ofAbsent.left().get());
    }

    /** The end of a process whose program failed is a loss: the other ranks wait for it. */
    @Test
    void aRankWhoseCodeThrewStaysInItsGroup() throws Exception {
        CompletableFuture<TcpStore> opening = job.openAsync(job.rank(0, 2), Job.settings());
        TcpStore second = job.openAsync(job.rank(1, 2), Job.settings()).join();
        Counting good = new Counting(opening.join().scope("all"));
        Counting bad = new Counting(second.scope("all"));
        CompletableFuture<Void> other = job.start(() -> {
            Communicator.builder().device(Device.host()).create(good).run(communicator -> {});
            return null;
        });
        IllegalStateException failure = assertThrows(
                IllegalStateException.class,
                () -> Communicator.builder().device(Device.host()).create(bad).run(communicator -> {
                    throw new IllegalStateException("mine");
                }));
        assertEquals("mine", failure.getMessage());
        assertEquals(0, failure.getSuppressed().length);
        other.join();
        // The group of the creation, and that of the communicator.
        assertEquals(2, good.entered().get());
        assertEquals(2, good.left().get());
        assertEquals(2, bad.entered().get());
        assertEquals(1, bad.left().get());
    }

    @Test
    void survivorsRecover() throws Exception {
        whenTheLastIsLost(
                store -> {
                    try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                            DeviceBuffer<Int32> numbers = Device.host().allocate(ElementType.INT32, 1);
                            Recovery recovery = Recovery.begin(
                                    store, "test", Communicator.builder().device(Device.host()))) {
                        waiting.countDown();
                        assertNamed(assertThrows(
                                NcclRemoteException.class, () -> allReduce(recovery.communicator(), numbers, stream)));
                        Communicator two = recovery.recover(Job.LONG);
                        numbers.fill(store.rank() + 1);
                        allReduce(two, numbers, stream);
                        int[] sum = new int[1];
                        numbers.copyTo(sum);
                        assertEquals(3, sum[0]);
                        assertTrue(two.failure().isEmpty());
                        store.among("end", List.of(0, 1)).barrier("end", Job.LONG);
                    }
                },
                store -> {
                    Recovery recovery =
                            Recovery.begin(store, "test", Communicator.builder().device(Device.host()));
                    over.await();
                    recovery.communicator().abort();
                });
    }

    /** A process that waits for work that never ends. */
    static final class WaitingRank {
        private WaitingRank() {}

        public static void main(String[] args) throws Exception {
            RankInfo self = RankInfo.fromEnvironment();
            TcpStore store = TcpStore.ofProcess(self, Job.LONG);
            Communicator communicator =
                    Communicator.builder().device(Device.cuda(0)).create(store.scope("all"));
            DeviceBuffer<Int32> numbers = communicator.device().allocate(ElementType.INT32, 1);
            communicator.allReduce(numbers, ReduceOp.SUM, communicator.stream());
            System.out.println("waits " + self.rank());
            try {
                communicator.work(communicator.stream()).await();
            } catch (NcclRemoteException lost) {
                System.out.println("told " + System.currentTimeMillis() + " " + lost.lostRanks() + " "
                        + lost.getMessage().replace('\n', ' ') + ".");
            }
            communicator.abort();
            numbers.close();
        }
    }

    /** Kills a rank of three; the store is in the process of the test, or of rank 0. */
    @ParameterizedTest
    @CsvSource({"0, false", "1, false", "2, false", "0, true", "1, true"})
    void killedProcessIsNamed(int victim, boolean rank0KeepsStore, @TempDir Path folder) throws Exception {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        FakeCuda cuda = FakeCuda.build(folder.resolve("cuda"));
        String library = StubLibraries.recording(folder, 23007).toString();
        int port = Ports.free();
        List<ChildJvm.Running> ranks = new ArrayList<>();
        try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0)) {
            for (int rank = 0; rank < SIZE; rank++) {
                ChildJvm jvm = cuda.jvm(new ChildJvm())
                        .environment("RANK", "" + rank)
                        .environment("WORLD_SIZE", "" + SIZE)
                        .environment("LOCAL_RANK", "" + rank)
                        .environment("LOCAL_WORLD_SIZE", "" + SIZE)
                        .environment("MASTER_ADDR", "127.0.0.1")
                        .environment("MASTER_PORT", "" + port)
                        .environment("NCCL_MULTI_RANK_GPU_ENABLE", "1")
                        .environment("FAKE_CUDA_FAIL", "cudaEventQuery=600")
                        .environment(
                                "STUB_CALLS",
                                Files.createFile(folder.resolve("calls" + rank)).toString())
                        .property("nccl4j.library", library);
                if (!rank0KeepsStore) {
                    jvm.environment("NCCL4J_STORE_ADDRESS", server.address());
                }
                ranks.add(jvm.start(WaitingRank.class));
            }
            for (int rank = 0; rank < SIZE; rank++) {
                ranks.get(rank).awaitText("waits " + rank);
            }
            Process killed = ranks.get(victim).process();
            killed.destroyForcibly();
            for (int rank = 0; rank < SIZE; rank++) {
                ChildJvm.Outcome outcome = ranks.get(rank).await();
                if (rank != victim) {
                    assertEquals(0, outcome.exitCode(), outcome.output());
                    assertTrue(
                            outcome.output()
                                    .matches("(?s).*told \\d+ \\[" + victim + "\\] .*The store reports: rank " + victim
                                            + " \\(127\\.0\\.0\\.1, process " + killed.pid() + "\\) is lost: .*"),
                            outcome.output());
                    assertEquals(
                            rank0KeepsStore && victim == 0,
                            outcome.output().contains("it keeps the store"),
                            outcome.output());
                }
            }
        } finally {
            ranks.forEach(rank -> rank.process().destroyForcibly());
        }
    }
}
