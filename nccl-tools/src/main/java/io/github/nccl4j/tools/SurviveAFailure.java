package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tools.launch.Signals;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntPredicate;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Continues a computation after the loss of a rank: the ranks sum in steps, the last rank is killed in the middle, and the others
 * recover and finish.
 *
 * <p>A step adds the contributions of all ranks of the current communicator to the state. Some ranks may have completed a step
 * that failed on others. Therefore each rank keeps the state before its last step, and after a failure all return to the last
 * step that every rank has completed.
 */
@Command(
        name = "08-survive-a-failure",
        aliases = {"08", "8", "survive-a-failure"},
        sortOptions = false,
        description = {
            "Sums arrays in steps; in one step the last rank kills itself, and the others continue with correct results.",
            "",
            "The survivors get an exception, agree on the remaining ranks, and shrink the communicator, or create a new one if "
                    + "the library can't shrink. nccl4j's launcher tolerates the death of that rank; most other launchers end "
                    + "the run.",
            ""
        })
final class SurviveAFailure extends Sample {

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "10000",
            description = "Elements of each rank. Default: ${DEFAULT-VALUE}.")
    private int count;

    @Option(
            names = {"-s", "--steps"},
            paramLabel = "N",
            defaultValue = "20",
            description = "Number of steps; the rank dies in the middle. Default: ${DEFAULT-VALUE}.")
    private int steps;

    @Option(
            names = {"-d", "--deadline"},
            paramLabel = "SECONDS",
            defaultValue = "10",
            description = "Deadline of a step. Default: ${DEFAULT-VALUE}.")
    private int deadline;

    /** The ranks that contributed to each completed step. */
    private final List<List<Integer>> completedBy = new ArrayList<>();

    private long[] state;

    /** The state before the last completed step. */
    private long[] previousState;

    private TcpStore store;
    private Recovery recovery;

    @Override
    void validate() {
        if (count < 1 || steps < 1 || deadline < 1) {
            throw invalid("-c, -s and -d must be at least 1: " + count + ", " + steps + ", " + deadline);
        }
    }

    /** The rank to kill: not rank 0, whose process hosts the store. */
    private static int victim(int size) {
        return size - 1;
    }

    @Override
    IntPredicate expendableRanks(int size) {
        return rank -> rank == victim(size) && size > 1;
    }

    @Override
    Communicator connect(RankInfo self, Duration timeout) {
        store = TcpStore.ofProcess(self, timeout);
        recovery = Recovery.begin(
                store, name(), Communicator.builder().device(device(self)).deadline(Duration.ofSeconds(deadline)));
        return recovery.communicator();
    }

    @Override
    void run(Communicator all) {
        int size = all.size();
        if (size < 2) {
            skip(all, "needs at least 2 ranks, one of which is killed: -n 2");
            return;
        }
        state = new long[count];
        try (CudaStream stream = CudaStream.nonBlocking(all.device());
                DeviceBuffer<Int64> numbers = all.device().allocate(ElementType.INT64, count)) {
            while (completedBy.size() < steps) {
                if (completedBy.size() == steps / 2 && store.rank() == victim(size)) {
                    die();
                }
                try {
                    step(recovery.communicator(), numbers, stream);
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    System.out.println("rank " + store.rank() + ": step " + completedBy.size() + " failed: "
                            + lost.getMessage().lines().findFirst().orElse(""));
                    recovery.recover(Duration.ofSeconds(deadline + 2L));
                    rollBack(recovery.communicator(), stream);
                }
            }
        }
        check(size);
        System.out.println("rank " + store.rank() + ": continued as rank "
                + recovery.communicator().rank() + " of " + recovery.members().size() + " after rank " + victim(size)
                + " was killed; " + steps + " steps of " + count + " elements, every element checked");
        recovery.close();
    }

    /** Adds the contributions of all ranks to the state, or throws and leaves the state unchanged. */
    private void step(Communicator communicator, DeviceBuffer<Int64> numbers, CudaStream stream) {
        int step = completedBy.size();
        long[] sums = new long[count];
        Arrays.setAll(sums, i -> contribution(store.rank(), step, i));
        numbers.copyFrom(sums);
        communicator.allReduce(numbers, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        numbers.copyTo(sums);
        previousState = state;
        state = new long[count];
        Arrays.setAll(state, i -> previousState[i] + sums[i]);
        completedBy.add(recovery.members());
    }

    /** Returns to the last step that all ranks have completed: at most one step back. */
    private void rollBack(Communicator communicator, CudaStream stream) {
        long[] least = {completedBy.size()};
        try (DeviceBuffer<Int64> number = communicator.device().allocate(ElementType.INT64, 1)) {
            number.copyFrom(least);
            communicator.allReduce(number, ReduceOp.MIN, stream);
            communicator.work(stream).await();
            number.copyTo(least);
        }
        require(
                completedBy.size() - least[0] <= 1,
                "ranks must be at most one step apart: " + completedBy.size() + ", " + least[0]);
        if (least[0] < completedBy.size()) {
            state = previousState;
            completedBy.remove(completedBy.size() - 1);
        }
    }

    private void check(int size) {
        List<Integer> survivors = recovery.members();
        require(
                survivors.size() == size - 1 && !survivors.contains(victim(size)),
                "all ranks but rank " + victim(size) + " must survive: " + survivors + " of " + size);
        long complete =
                completedBy.stream().filter(ranks -> ranks.size() == size).count();
        require(
                complete >= steps / 2 - 1 && complete <= steps / 2,
                "all " + size + " ranks must complete " + steps / 2 + " steps or one less: " + complete);
        for (int i = 0; i < count; i++) {
            long expected = 0;
            for (int step = 0; step < steps; step++) {
                for (int rank : completedBy.get(step)) {
                    expected += contribution(rank, step, i);
                }
            }
            require(state[i] == expected, "element " + i + " is wrong: expected " + expected + ", got " + state[i]);
        }
    }

    private static long contribution(int rank, int step, int element) {
        return (rank + 1L) * (step + 1) + element;
    }

    private void require(boolean condition, String message) {
        if (!condition) {
            throw new Failure("rank " + store.rank() + ": " + message);
        }
    }

    /** Kills this process with SIGKILL, as the kernel does when memory runs out: nothing is closed, no message is sent. */
    private static void die() {
        System.out.flush();
        try {
            Signals.send("KILL", ProcessHandle.current().pid());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        throw new Failure("this process still runs after sending SIGKILL to itself");
    }
}
