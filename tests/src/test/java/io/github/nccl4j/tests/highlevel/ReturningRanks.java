package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.launch.TcpStoreServer;
import java.net.InetAddress;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Ranks that sum in steps, are lost in turn and come back, as threads, each with its own connection to a store that no rank keeps.
 * A step adds the same numbers to the state whichever ranks take part.
 */
final class ReturningRanks implements AutoCloseable {
    static final Duration PATIENCE = Duration.ofSeconds(20);
    static final int ELEMENTS = 100;

    /** Numbers that a step adds; the ranks share them. */
    private static final int SHARES = 12;

    private final int size;
    private final TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0);
    private final ExecutorService threads = Executors.newCachedThreadPool();
    /** The sizes of the communicator, by step. */
    final Map<Integer, Integer> sizes = new ConcurrentHashMap<>();

    private final Map<Integer, CountDownLatch> done = new ConcurrentHashMap<>();
    /** The ranks that have done a step, by the step and the members of the communicator. */
    private final Map<String, Set<Integer>> doneBy = new ConcurrentHashMap<>();

    ReturningRanks(int size) {
        this.size = size;
    }

    /** What a rank does before a step, beside the step itself; returns false to be lost. */
    interface BeforeStep {
        boolean run(Recovery recovery, TcpStore store, int step) throws Exception;
    }

    RankInfo rank(int rank) {
        return rankAt(rank, server.port());
    }

    /** A rank that reaches the store at another port. */
    RankInfo rankAt(int rank, int port) {
        return new RankInfo(rank, size, rank, size, "127.0.0.1", port, "job", 0, RankInfo.Source.PROPERTIES);
    }

    int port() {
        return server.port();
    }

    TcpStore open(int rank) {
        return open(rank(rank));
    }

    static TcpStore open(RankInfo rank) {
        return TcpStore.builder()
                .withoutSecret()
                .withoutServer()
                .timeout(PATIENCE)
                .open(rank);
    }

    static CommunicatorBuilder settings() {
        return Communicator.builder().device(Device.host()).deadline(PATIENCE);
    }

    Future<long[]> start(int rank, int steps, BeforeStep before) {
        return submit(() -> run(rank, steps, before));
    }

    <T> Future<T> submit(Callable<T> task) {
        return threads.submit(task);
    }

    /** Waits until all ranks of the communicator have done a step. */
    void awaitStep(int step) throws InterruptedException {
        if (!latch(step).await(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
            throw new AssertionError("step " + step + " was not done");
        }
    }

    /** Counts a rank that has done a step; the last one of its communicator releases those that wait. */
    private void done(int step, List<Integer> members, int rank) {
        Set<Integer> ranks = doneBy.computeIfAbsent(step + " of " + members, one -> ConcurrentHashMap.newKeySet());
        ranks.add(rank);
        if (ranks.size() == members.size()) {
            latch(step).countDown();
        }
    }

    private CountDownLatch latch(int step) {
        return done.computeIfAbsent(step, one -> new CountDownLatch(1));
    }

    /** Runs one process of a rank; returns its state at the end, or null if it was lost. */
    long[] run(int rank, int steps, BeforeStep before) throws Exception {
        return run(rank(rank), steps, before);
    }

    long[] run(RankInfo rank, int steps, BeforeStep before) throws Exception {
        try (TcpStore store = open(rank);
                CudaStream stream = CudaStream.nonBlocking(Device.host());
                DeviceBuffer<Int64> state = Device.host().allocate(ElementType.INT64, ELEMENTS);
                DeviceBuffer<Int64> sum = Device.host().allocate(ElementType.INT64, ELEMENTS);
                Recovery recovery = Recovery.begin(store, "sums", settings())) {
            // What a rank that comes back must not keep.
            state.fill(store.attempt() == 0 ? 0 : -1);
            int step = 0;
            while (step < steps) {
                try {
                    boolean stays = before.run(recovery, store, step);
                    if (stays && recovery.admit(PATIENCE)) {
                        int agreed = (int) recovery.broadcastState(step, stream, state);
                        // The others may have done a step that a loss ended here.
                        stays = agreed == step || before.run(recovery, store, agreed);
                        step = agreed;
                    }
                    if (!stays) {
                        recovery.communicator().abort();
                        return null;
                    }
                    step(recovery.communicator(), step, state, sum, stream);
                    sizes.merge(step, recovery.communicator().size(), Math::max);
                    done(step, recovery.members(), store.rank());
                    step++;
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    recovery.recover(PATIENCE);
                }
            }
            recovery.rendezvous("end").barrier("end", PATIENCE);
            return numbers(state);
        }
    }

    private static void step(
            Communicator communicator,
            int step,
            DeviceBuffer<Int64> state,
            DeviceBuffer<Int64> sum,
            CudaStream stream) {
        long[] mine = new long[ELEMENTS];
        for (int share = communicator.rank(); share < SHARES; share += communicator.size()) {
            int number = share;
            Arrays.setAll(mine, i -> mine[i] + number(step, number, i));
        }
        sum.copyFrom(mine);
        communicator.allReduce(sum, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        long[] all = numbers(sum);
        long[] sums = numbers(state);
        // Depends on the order of the steps.
        Arrays.setAll(sums, i -> 3 * sums[i] + all[i]);
        state.copyFrom(sums);
    }

    private static long[] numbers(DeviceBuffer<Int64> buffer) {
        long[] numbers = new long[ELEMENTS];
        buffer.copyTo(numbers);
        return numbers;
    }

    private static long number(int step, int share, int element) {
        return (step + 1L) * (share + 7) + element;
    }

    /** The state after some steps that nothing has disturbed. */
    static long[] expected(int steps) {
        long[] state = new long[ELEMENTS];
        for (int step = 0; step < steps; step++) {
            for (int i = 0; i < ELEMENTS; i++) {
                state[i] *= 3;
                for (int share = 0; share < SHARES; share++) {
                    state[i] += number(step, share, i);
                }
            }
        }
        return state;
    }

    static List<Integer> sorted(Recovery recovery) {
        return recovery.members().stream().sorted().toList();
    }

    @Override
    public void close() {
        threads.shutdownNow();
        server.close();
    }
}
