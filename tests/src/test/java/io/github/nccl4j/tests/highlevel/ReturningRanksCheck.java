package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CallInterceptor;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.Held;
import io.github.nccl4j.tools.support.Checks;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Loses a rank and takes it back, over and over: {@code ReturningRanksCheck CYCLES}. Each rank is lost in turn. Results must be
 * exact, and files, threads and memory as they were after the first cycles.
 */
final class ReturningRanksCheck {
    private static final int RANKS = 4;
    private static final int STEPS = 4;

    private ReturningRanksCheck() {}

    public static void main(String... args) throws Exception {
        int cycles = Integer.parseInt(args[0]);
        Counted grown = new Counted();
        NcclLibrary.intercept(grown);
        run(RANKS);
        Held before = Held.now();
        run(cycles);
        Held after = Held.now();
        for (int i = 0; i < 25 && !leftSince(before, after).isEmpty(); i++) {
            after = Held.now();
        }
        System.out.println(before);
        System.out.println(after);
        new Checks().equal(List.of(), leftSince(before, after), "what is left");
        // In each cycle three ranks grow, and one joins.
        new Checks().equal(RANKS * (RANKS + cycles), grown.count.get(), "calls of ncclCommGrow");
        System.out.println(cycles + " cycles left nothing");
    }

    /** Counts the growths that succeed. */
    private static final class Counted implements CallInterceptor {
        private final AtomicInteger count = new AtomicInteger();

        @Override
        public void after(Call call, int result, long nanoseconds) {
            if (call.function().equals("ncclCommGrow") && result == 0) {
                count.incrementAndGet();
            }
        }
    }

    private static List<String> leftSince(Held before, Held after) {
        List<String> left = new ArrayList<>(after.grownSince(before));
        if (left.isEmpty() && after.threads() > before.threads()) {
            left.add("threads: " + before.threads() + ", then " + after.threads());
        }
        return left;
    }

    /** In each cycle of some steps, one rank is lost before the second, and is back before the last. */
    private static void run(int cycles) throws Exception {
        int steps = cycles * STEPS;
        try (ReturningRanks ranks = new ReturningRanks(RANKS)) {
            List<Future<long[]>> running = new ArrayList<>();
            for (int rank = 0; rank < RANKS; rank++) {
                int self = rank;
                running.add(ranks.submit(() -> lives(ranks, self, steps)));
            }
            for (Future<long[]> rank : running) {
                check(rank.get(60, TimeUnit.SECONDS), ReturningRanks.expected(steps));
            }
            for (int cycle = 0; cycle < cycles; cycle++) {
                check(ranks.sizes.get(cycle * STEPS), RANKS);
                check(ranks.sizes.get(cycle * STEPS + 1), RANKS - 1);
                check(ranks.sizes.get(cycle * STEPS + STEPS - 1), RANKS);
            }
        }
    }

    private static void check(Object actual, Object expected) {
        boolean same = actual instanceof long[] one && expected instanceof long[] other
                ? Arrays.equals(one, other)
                : actual.equals(expected);
        if (!same) {
            throw new AssertionError("expected " + text(expected) + ", got " + text(actual));
        }
    }

    private static String text(Object value) {
        return value instanceof long[] numbers ? Arrays.toString(numbers) : "" + value;
    }

    /** All processes of a rank, one after another. */
    private static long[] lives(ReturningRanks ranks, int rank, int steps) throws Exception {
        int[] next = {rank * STEPS + 1};
        while (true) {
            long[] end =
                    ranks.run(rank, steps, (recovery, store, step) -> before(recovery, store, rank, next[0], step));
            if (end != null) {
                return end;
            }
            ranks.awaitStep(next[0]);
            next[0] += RANKS * STEPS;
        }
    }

    private static boolean before(Recovery recovery, TcpStore store, int rank, int lostAt, int step) {
        int cycle = step / STEPS;
        if (step == lostAt) {
            return false;
        }
        if (step % STEPS == STEPS - 1) {
            int victim = cycle % RANKS;
            if (victim != rank && recovery.members().size() < RANKS) {
                store.await(List.of("sums-waits-" + victim + "-" + (cycle / RANKS + 1)), ReturningRanks.PATIENCE);
            }
        }
        return true;
    }
}
