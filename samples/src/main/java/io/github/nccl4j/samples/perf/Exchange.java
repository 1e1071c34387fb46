package io.github.nccl4j.samples.perf;

import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What the threads of all processes tell each other between measurements: numbers, which are combined, and that they have
 * come so far. Threads of one process use its memory; processes use NCCL, outside of what is measured, and wait for each
 * other in memory that they share, if they can.
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

    private static final long PATIENCE_SECONDS = 600;

    private final boolean severalProcesses;
    private final int threads;
    private final CyclicBarrier barrier;
    private final double[] numbers;
    private final SharedBarrier shared;

    /**
     * For the threads of this process.
     *
     * @param shared of all threads of all processes; null if they share no memory, or there is one process
     */
    Exchange(int processes, int threads, SharedBarrier shared) {
        this.threads = threads;
        this.shared = shared;
        severalProcesses = processes > 1;
        barrier = new CyclicBarrier(threads);
        numbers = new double[threads];
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
        return severalProcesses ? overNccl(members, number, mode) : overMemory(thread, number, mode);
    }

    private double overMemory(int thread, double number, Mode mode) {
        if (threads == 1) {
            return number;
        }
        numbers[thread] = number;
        await();
        double combined = numbers[0];
        for (int i = 1; i < threads; i++) {
            combined = switch (mode) {
                case RANK0 -> combined;
                case AVG, SUM -> combined + numbers[i];
                case MIN -> Math.min(combined, numbers[i]);
                case MAX -> Math.max(combined, numbers[i]);
            };
        }
        // Nobody writes the next number before all have read this one.
        await();
        return mode == Mode.AVG ? combined / threads : combined;
    }

    private void await() {
        try {
            barrier.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
            throw new PerfException("another thread has failed or hangs: " + e);
        }
    }

    /** A thread's number counts once, at its first rank, except for the least and the largest, where that is no matter. */
    private static double overNccl(List<Member> members, double number, Mode mode) {
        boolean extreme = mode == Mode.MIN || mode == Mode.MAX;
        for (int i = 0; i < members.size(); i++) {
            Member member = members.get(i);
            boolean counts = extreme || (i == 0 && (mode != Mode.RANK0 || member.rank() == 0));
            member.number.fill(counts ? number : 0);
        }
        ReduceOp op = mode == Mode.MIN ? ReduceOp.MIN : mode == Mode.MAX ? ReduceOp.MAX : ReduceOp.SUM;
        Group.run(() -> members.forEach(member -> member.communicator.allReduce(member.number, op, member.stream)));
        double[] combined = new double[1];
        for (Member member : members) {
            member.stream.synchronize();
            member.number.copyTo(combined);
        }
        return mode == Mode.AVG ? combined[0] * members.size() / members.get(0).size() : combined[0];
    }

    /** So that nobody waits for a thread that has failed. */
    void abort() {
        barrier.reset();
        if (shared != null) {
            shared.abort();
        }
    }
}
