package io.github.nccl4j.samples.perf;

import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.Arrays;
import java.util.List;
import java.util.stream.DoubleStream;

/**
 * What the threads of all processes tell each other between measurements: numbers, which are combined, and that they have
 * come so far. In memory that they share; processes of several machines use NCCL.
 */
final class Exchange {
    /** How the numbers of ranks become one. */
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
    /** Of this process' threads. */
    private final SharedBarrier own;

    private final double[][] numbers;

    /**
     * For the threads of this process.
     *
     * @param process which process this is
     * @param threads how many threads each has
     * @param shared of all threads of all processes; null if they share no memory
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

    /** One number of all threads' numbers. */
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

    /** A thread's number counts once, at its first rank, except for the least and the largest, where that is no matter. */
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
     * The numbers of all processes: each the largest of those that the process' threads have at the same place.
     *
     * @param mine this thread's numbers, as many as every other thread's of any process
     * @return the numbers by process; null for other threads than the first of a process
     */
    List<double[]> byProcess(int thread, double[] mine) {
        numbers[thread] = mine;
        own.await();
        if (thread != 0) {
            // Nobody writes the next numbers before the first thread has read these.
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

    /** So that nobody waits for a thread that has failed. */
    void abort() {
        own.abort();
        if (shared != null) {
            shared.abort();
        }
    }
}
