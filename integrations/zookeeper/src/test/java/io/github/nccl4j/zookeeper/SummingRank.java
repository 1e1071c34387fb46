package io.github.nccl4j.zookeeper;

import io.github.nccl4j.highlevel.Communicator;
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
import java.time.Duration;

/** A rank that sums in steps. A step adds the same numbers to the state whichever ranks take part, and depends on the order. */
final class SummingRank {
    static final Duration PATIENCE = Duration.ofSeconds(40);
    private static final int SHARES = 12;

    private SummingRank() {}

    /** What a rank does before a step, beside the step itself; returns false to be lost. */
    interface BeforeStep {
        boolean run(Recovery recovery, ZooKeeperStore store, int step) throws Exception;
    }

    /** Called with the message of each exception that another rank has caused. */
    interface OnLoss {
        void accept(String message);
    }

    /**
     * As a process: {@code SummingRank ENSEMBLE RANK SIZE STEPS}. Before each step but the first it waits for the key "go-STEP-RANK"
     * of the test, and it sets "done-STEP-RANK-ATTEMPT" after it. It prints the time and the message of each loss, and the state at the end.
     */
    public static void main(String[] arguments) throws Exception {
        int rank = Integer.parseInt(arguments[1]);
        int size = Integer.parseInt(arguments[2]);
        RankInfo self =
                new RankInfo(rank, size, rank, size, "127.0.0.1", 29500, "processes", 0, RankInfo.Source.PROPERTIES);
        try (ZooKeeperStore store = ZooKeeperStore.builder(arguments[0])
                .timeout(PATIENCE)
                .sessionTimeout(Ensemble.SHORT_SESSION)
                .open(self)) {
            Long state = run(
                    store,
                    Integer.parseInt(arguments[3]),
                    (recovery, same, step) -> {
                        if (step > 0) {
                            same.set("done-" + (step - 1) + "-" + same.rank() + "-" + same.attempt(), new byte[0]);
                            same.get("go-" + step + "-" + same.rank(), PATIENCE);
                        }
                        return true;
                    },
                    message -> System.out.println(System.currentTimeMillis() + " " + message.replace('\n', ' ')));
            System.out.println("state " + state);
        }
    }

    /** Runs one process of a rank; returns its state at the end, or null if it was lost. */
    static Long run(ZooKeeperStore store, int steps, BeforeStep before, OnLoss onLoss) throws Exception {
        try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                DeviceBuffer<Int64> state = Device.host().allocate(ElementType.INT64, 1);
                DeviceBuffer<Int64> sum = Device.host().allocate(ElementType.INT64, 1);
                Recovery recovery = Recovery.begin(
                        store,
                        "sums",
                        Communicator.builder().device(Device.host()).deadline(PATIENCE))) {
            // A rank that comes back must not keep it.
            state.fill(store.attempt() == 0 ? 0 : -1);
            int step = 0;
            while (step < steps) {
                try {
                    if (!before.run(recovery, store, step)) {
                        recovery.communicator().abort();
                        return null;
                    }
                    if (recovery.admit(PATIENCE)) {
                        step = (int) recovery.broadcastState(step, stream, state);
                    }
                    step(recovery.communicator(), step, state, sum, stream);
                    step++;
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    onLoss.accept(lost.getMessage());
                    recovery.recover(PATIENCE);
                }
            }
            recovery.rendezvous("end").barrier("end", PATIENCE);
            return number(state);
        }
    }

    private static void step(
            Communicator communicator,
            int step,
            DeviceBuffer<Int64> state,
            DeviceBuffer<Int64> sum,
            CudaStream stream) {
        long mine = 0;
        for (int share = communicator.rank(); share < SHARES; share += communicator.size()) {
            mine += (step + 1L) * (share + 7);
        }
        sum.fill(mine);
        communicator.allReduce(sum, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        state.fill(3 * number(state) + number(sum));
    }

    private static long number(DeviceBuffer<Int64> buffer) {
        long[] numbers = new long[1];
        buffer.copyTo(numbers);
        return numbers[0];
    }

    /** The state after some steps that nothing has disturbed. */
    static long expected(int steps) {
        long state = 0;
        for (int step = 0; step < steps; step++) {
            state *= 3;
            for (int share = 0; share < SHARES; share++) {
                state += (step + 1L) * (share + 7);
            }
        }
        return state;
    }
}
