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
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Continues a computation after the loss of a rank: the ranks sum in steps, the last rank is killed in the middle, and the others
 * recover and finish.
 *
 * <p>A step adds the contributions of all ranks of the current communicator to the state. Some ranks may have completed a step
 * that failed on others. Therefore, after a failure, all return to the last step that every rank has completed.
 *
 * <p>The launcher must tolerate the death of a rank. The command nccl4j does; most others end the job.
 */
public final class SurviveAFailure {

    private static final Duration START = Duration.ofSeconds(60);

    public static void main(String[] args) throws IOException, InterruptedException {
        int count = 10_000;
        int steps = 20;
        int deadline = 10;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-c" -> count = Integer.parseInt(args[++i]);
                case "-s" -> steps = Integer.parseInt(args[++i]);
                case "-d" -> deadline = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (count < 1 || steps < 1 || deadline < 1) {
            throw new IllegalArgumentException(
                    "-c, -s and -d must be at least 1: " + count + ", " + steps + ", " + deadline);
        }
        RankInfo self = RankInfo.fromEnvironment();
        if (self.worldSize() < 2) {
            System.out.println("skipped: needs at least 2 ranks, one of which is killed: -n 2");
            return;
        }
        // Not rank 0, whose process runs the store under launchers other than the command nccl4j.
        int victim = self.worldSize() - 1;
        TcpStore store = TcpStore.ofProcess(self, START);
        // The ranks that contributed to each completed step, and the sums after it; before the first step, none.
        List<List<Integer>> contributors = new ArrayList<>();
        List<long[]> states = new ArrayList<>(List.of(new long[count]));
        var settings = Communicator.builder().deadline(Duration.ofSeconds(deadline));
        try (Recovery recovery = Recovery.begin(store, "steps", settings);
                CudaStream stream =
                        CudaStream.nonBlocking(recovery.communicator().device());
                DeviceBuffer<Int64> buffer = recovery.communicator().device().allocate(ElementType.INT64, count)) {
            while (contributors.size() < steps) {
                int step = contributors.size();
                if (step == steps / 2 && self.rank() == victim) {
                    die();
                }
                try {
                    long[] numbers = new long[count];
                    Arrays.setAll(numbers, i -> contribution(self.rank(), step, i));
                    reduce(recovery.communicator(), buffer, numbers, ReduceOp.SUM, stream);
                    long[] before = states.get(step);
                    Arrays.setAll(numbers, i -> before[i] + numbers[i]);
                    states.add(numbers);
                    contributors.add(recovery.members());
                } catch (NcclRemoteException | NcclTimeoutException lost) {
                    System.out.println("rank " + self.rank() + ": step " + step + " failed: "
                            + lost.getMessage().lines().findFirst().orElse(""));
                    recovery.recover(Duration.ofSeconds(deadline + 2L));
                    long[] completed = {contributors.size()};
                    reduce(recovery.communicator(), buffer.slice(0, 1), completed, ReduceOp.MIN, stream);
                    contributors
                            .subList((int) completed[0], contributors.size())
                            .clear();
                    states.subList((int) completed[0] + 1, states.size()).clear();
                }
            }
            require(!recovery.members().contains(victim), "rank " + victim + " must be lost: " + recovery.members());
            require(recovery.members().size() == victim, "the others must survive: " + recovery.members());
            check(states.get(steps), contributors);
            System.out.println("rank " + self.rank() + ": continued as rank "
                    + recovery.communicator().rank() + " of " + victim + " after rank " + victim + " was killed; "
                    + steps + " steps of " + count + " elements, every element checked");
        }
    }

    private static void reduce(
            Communicator communicator, DeviceBuffer<Int64> buffer, long[] numbers, ReduceOp op, CudaStream stream) {
        buffer.copyFrom(numbers);
        communicator.allReduce(buffer, op, stream);
        communicator.work(stream).await();
        buffer.copyTo(numbers);
    }

    private static long contribution(int rank, int step, int element) {
        return (rank + 1L) * (step + 1) + element;
    }

    private static void check(long[] sums, List<List<Integer>> contributors) {
        for (int i = 0; i < sums.length; i++) {
            long expected = 0;
            for (int step = 0; step < contributors.size(); step++) {
                for (int rank : contributors.get(step)) {
                    expected += contribution(rank, step, i);
                }
            }
            require(sums[i] == expected, "element " + i + " is wrong: expected " + expected + ", got " + sums[i]);
        }
    }

    private static void require(boolean condition, String message) {
        if (!condition) {
            throw new IllegalStateException(message);
        }
    }

    /** Kills this process with SIGKILL, as the kernel does when memory runs out: nothing is closed, no message is sent. */
    private static void die() throws IOException, InterruptedException {
        System.out.flush();
        new ProcessBuilder(
                        "/bin/sh", "-c", "kill -KILL " + ProcessHandle.current().pid())
                .start()
                .waitFor();
        throw new IllegalStateException("this process still runs after sending SIGKILL to itself");
    }
}
