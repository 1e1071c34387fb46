package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.Arrays;
import java.util.List;
import java.util.stream.DoubleStream;

/**
 * Barriers and reductions of numbers between the threads of all processes, outside the measured time. Uses memory that the
 * processes share, or NCCL if they run on several machines. Each thread calls the methods in the same order.
 */
final class Exchange {
    /** Reductions of the threads' numbers. */
    enum Mode {
        RANK0,
        AVG,
        MIN,
        MAX,
        SUM
    }

    private final int firstParty;
    private final SharedBarrier shared;
    private final Processes processes;

    /** The barrier of this process's threads. */
    private final SharedBarrier own;

    private final double[][] numbers;

    /**
     * Creates an object that the threads of this process share.
     *
     * @param process the rank of this process
     * @param threads the number of threads of each process
     * @param shared the barrier of all threads of all processes, or null if they share no memory
     */
    Exchange(int process, int threads, SharedBarrier shared, Processes processes) {
        firstParty = process * threads;
        this.shared = shared;
        this.processes = processes;
        own = SharedBarrier.ofThreads(threads);
        numbers = new double[threads][];
    }

    /** Waits for all threads of all processes. */
    void barrier(int thread, List<Member> members) {
        if (shared != null) {
            shared.await();
        } else {
            combine(thread, members, 0, Mode.SUM);
        }
    }

    /** Reduces the numbers of all threads. */
    double combine(int thread, List<Member> members, double number, Mode mode) {
        return shared == null
                ? overNccl(members, number, mode)
                : combine(shared.gather(firstParty + thread, number), mode);
    }

    private static double combine(double[] numbers, Mode mode) {
        DoubleStream all = Arrays.stream(numbers);
        return switch (mode) {
            case RANK0 -> numbers[0];
            case AVG -> all.average().orElseThrow();
            case MIN -> all.min().orElseThrow();
            case MAX -> all.max().orElseThrow();
            case SUM -> all.sum();
        };
    }

    /** For sums, only the first rank of a thread contributes its number; for the minimum and maximum, all its ranks do. */
    private static double overNccl(List<Member> members, double number, Mode mode) {
        boolean extreme = mode == Mode.MIN || mode == Mode.MAX;
        for (int i = 0; i < members.size(); i++) {
            Member member = members.get(i);
            boolean counts = extreme || (i == 0 && (mode != Mode.RANK0 || member.rank() == 0));
            member.number().fill(counts ? number : 0);
        }
        ReduceOp op = mode == Mode.MIN ? ReduceOp.MIN : mode == Mode.MAX ? ReduceOp.MAX : ReduceOp.SUM;
        Group.run(() -> members.forEach(member -> member.communicator.allReduce(member.number(), op, member.stream)));
        double[] combined = new double[1];
        for (Member member : members) {
            member.stream.synchronize();
            member.number().copyTo(combined);
        }
        return mode == Mode.AVG ? combined[0] * members.size() / members.get(0).size() : combined[0];
    }

    /**
     * Gathers numbers by process, each the maximum over the threads of the process.
     *
     * @param mine the numbers of this thread; their count is equal in all threads of all processes
     * @return the numbers by process; null in all threads except the first of a process
     */
    List<double[]> byProcess(int thread, double[] mine) {
        numbers[thread] = mine;
        own.await();
        if (thread != 0) {
            // Wait until the first thread has read the numbers.
            own.await();
            return null;
        }
        double[] largest = mine.clone();
        for (double[] ofThread : numbers) {
            Arrays.setAll(largest, i -> Math.max(largest[i], ofThread[i]));
        }
        own.await();
        return processes.gather(largest);
    }

    /** Makes waiting threads fail, after a thread has failed. */
    void abort() {
        own.abort();
        if (shared != null) {
            shared.abort();
        }
    }
}
