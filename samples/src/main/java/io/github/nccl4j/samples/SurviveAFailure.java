package io.github.nccl4j.samples;

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
import io.github.nccl4j.samples.launch.Signals;
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
 * Sums in steps; in the middle of it the last rank is killed, and the others go on without it.
 *
 * <p>A step adds to the state what all ranks of then contribute. Some ranks may have completed a step that failed at others, so
 * all keep the state before their last step, and go back to the step that all have completed.
 */
@Command(
        name = "08-survive-a-failure",
        aliases = {"08", "8", "survive-a-failure"},
        sortOptions = false,
        description = {
            "Sums arrays in steps; in one of them the last rank kills itself, and the others go on with the right results.",
            "",
            "The others get an exception, agree who is left, and shrink the communicator, or make a new one where the library "
                    + "can't. The launcher takes the death of that rank for part of the sample; another one ends the run, "
                    + "mostly.",
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
            description = "Steps; the rank dies in the middle one. Default: ${DEFAULT-VALUE}.")
    private int steps;

    @Option(
            names = {"-d", "--deadline"},
            paramLabel = "SECONDS",
            defaultValue = "10",
            description = "After this time a step has failed. Default: ${DEFAULT-VALUE}.")
    private int deadline;

    /** Which ranks did each step that was done. */
    private final List<List<Integer>> doneBy = new ArrayList<>();

    private long[] state;
    private long[] before;

    private TcpStore store;
    private Recovery recovery;

    @Override
    void validate() {
        if (count < 1 || steps < 1 || deadline < 1) {
            throw invalid("-c, -s and -d must be at least 1: " + count + ", " + steps + ", " + deadline);
        }
    }

    /** Not rank 0, whose process keeps the store. */
    private static int victim(int size) {
        return size - 1;
    }

    @Override
    IntPredicate mayBeKilled(int size) {
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
            skip(all, "a rank that survives needs another one that does not: -n 2 or more");
            return;
        }
        state = new long[count];
        try (CudaStream stream = CudaStream.nonBlocking(all.device());
                DeviceBuffer<Int64> numbers = all.device().allocate(ElementType.INT64, count)) {
            while (doneBy.size() < steps) {
                if (doneBy.size() == steps / 2 && store.rank() == victim(size)) {
                    die();
                }
                try {
                    step(recovery.communicator(), numbers, stream);
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    System.out.println("rank " + store.rank() + ": step " + doneBy.size() + " failed: "
                            + lost.getMessage().lines().findFirst().orElse(""));
                    recovery.recover(Duration.ofSeconds(deadline + 2L));
                    goBack(recovery.communicator(), stream);
                }
            }
        }
        check(size);
        System.out.println("rank " + store.rank() + ": went on as rank "
                + recovery.communicator().rank() + " of " + recovery.members().size() + " after rank " + victim(size)
                + " was killed; " + steps + " steps of " + count + " elements, every element checked");
        recovery.close();
    }

    /** Adds what all ranks of now contribute; the state stays as it was if that fails. */
    private void step(Communicator communicator, DeviceBuffer<Int64> numbers, CudaStream stream) {
        int step = doneBy.size();
        long[] sums = new long[count];
        Arrays.setAll(sums, i -> contribution(store.rank(), step, i));
        numbers.copyFrom(sums);
        communicator.allReduce(numbers, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        numbers.copyTo(sums);
        before = state;
        state = new long[count];
        Arrays.setAll(state, i -> before[i] + sums[i]);
        doneBy.add(recovery.members());
    }

    /** To the step that all have completed. */
    private void goBack(Communicator communicator, CudaStream stream) {
        long[] least = {doneBy.size()};
        try (DeviceBuffer<Int64> number = communicator.device().allocate(ElementType.INT64, 1)) {
            number.copyFrom(least);
            communicator.allReduce(number, ReduceOp.MIN, stream);
            communicator.work(stream).await();
            number.copyTo(least);
        }
        require(doneBy.size() - least[0] <= 1, "step " + doneBy.size() + ", others are at " + least[0]);
        if (least[0] < doneBy.size()) {
            state = before;
            doneBy.remove(doneBy.size() - 1);
        }
    }

    private void check(int size) {
        List<Integer> left = recovery.members();
        require(left.size() == size - 1 && !left.contains(victim(size)), "ranks " + left + " are left of " + size);
        long with = doneBy.stream().filter(ranks -> ranks.size() == size).count();
        require(with >= steps / 2 - 1 && with <= steps / 2, "all " + size + " ranks did " + with + " steps");
        for (int i = 0; i < count; i++) {
            long expected = 0;
            for (int step = 0; step < steps; step++) {
                for (int rank : doneBy.get(step)) {
                    expected += contribution(rank, step, i);
                }
            }
            require(state[i] == expected, "element " + i + " is wrong: expected " + expected + ", got " + state[i]);
        }
    }

    private static long contribution(int rank, int step, int element) {
        return (rank + 1L) * (step + 1) + element;
    }

    private void require(boolean right, String what) {
        if (!right) {
            throw new Failure("rank " + store.rank() + ": " + what);
        }
    }

    /** As the kernel kills a process that wants too much memory: nothing is closed, and nobody is told. */
    private static void die() {
        System.out.flush();
        try {
            Signals.send("KILL", ProcessHandle.current().pid());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        throw new Failure("this process could not kill itself");
    }
}
