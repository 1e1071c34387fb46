package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl.ncclUniqueId;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;

/**
 * Three ranks in threads of a process with faults: {@code main(scenario)}. Prints a line for each rank: its number, how many
 * calls succeeded, the code of the next, the text, and for how many milliseconds the rank was at it.
 */
final class FaultScenarios {
    private static final int RANKS = 3;
    private static final int CALLS = 4;

    /** The thread of rank 0, when its shrink has failed once; see {@link #lateShrink}. */
    private static final CompletableFuture<NativeWait> GAVE_UP = new CompletableFuture<>();

    private static final CountDownLatch MADE = new CountDownLatch(RANKS);

    private FaultScenarios() {}

    public static void main(String... scenario) throws Exception {
        List<String> lines =
                switch (scenario[0]) {
                    case "calls" -> HostEngineTest.inThreads(RANKS, FaultScenarios::calls);
                    case "abort" -> HostEngineTest.inThreads(RANKS, FaultScenarios::abortSoon);
                    case "shrink" -> HostEngineTest.inThreads(RANKS, FaultScenarios::shrink);
                    case "put" -> HostEngineTest.inThreads(2, FaultScenarios::putAndDie);
                    case "late" -> HostEngineTest.inThreads(RANKS, FaultScenarios::lateShrink);
                    case "join" -> List.of(join());
                    case "CommSplit", "CommShrink" ->
                        HostEngineTest.inThreads(RANKS, self -> made(self, () -> make(scenario[0], self)));
                    case "CommGrow" -> grow();
                    default -> throw new IllegalArgumentException(scenario[0]);
                };
        lines.forEach(System.out::println);
    }

    /** All-reduces and broadcasts in turn, until one fails. */
    private static String calls(Rank self) {
        long start = System.nanoTime();
        int done = 0;
        int result = nccl.ncclSuccess;
        try (FloatPointer data = new FloatPointer(10)) {
            while (done < CALLS) {
                result = call(self, data, done);
                if (result != nccl.ncclSuccess) {
                    break;
                }
                done++;
            }
            long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
            String text = "";
            if (result == nccl.ncclSuccess) {
                // Others may still be in the last call.
                self.destroy();
            } else {
                text = nccl.ncclGetLastError(self.comm());
                nccl.ncclCommAbort(self.comm());
            }
            return "rank " + self.rank() + ": " + done + " done, then " + result + ", " + millis + " ms, " + text;
        }
    }

    private static int call(Rank self, FloatPointer data, int number) {
        return number % 2 == 0
                ? nccl.ncclAllReduce(data.address(), data.address(), 10, nccl.ncclFloat, nccl.ncclMax, self.comm(), 0)
                : nccl.ncclBcast(data.address(), 10, nccl.ncclFloat, 0, self.comm(), 0);
    }

    /** As {@link #calls}, where each rank has a watchdog that aborts it in its first call. */
    private static String abortSoon(Rank self) throws IOException {
        CompletableFuture<Integer> aborted =
                NativeWait.ofThisThread().whenInside("ncclAllReduce", () -> nccl.ncclCommAbort(self.comm()));
        String line = calls(self);
        aborted.join();
        return line;
    }

    /** After a failure, the ranks other than 1 go on together. */
    private static String shrink(Rank self) {
        try (FloatPointer data = new FloatPointer(10)) {
            int result = call(self, data, 0);
            if (self.rank() == 1) {
                nccl.ncclCommAbort(self.comm());
                return "rank 1: " + result;
            }
            Rank rest = HostEngineRegroupTest.shrink(self, nccl.NCCL_SHRINK_ABORT, 1);
            nccl.ncclCommAbort(self.comm());
            float sum = HostEngineRegroupTest.sum(rest, 1 + self.rank());
            rest.destroy();
            return "rank " + self.rank() + ": " + result + ", then " + sum;
        }
    }

    /** Rank 1 puts, and is dropped at its next call; rank 0 waits for the put, and then for another. */
    private static String putAndDie(Rank self) throws InterruptedException {
        int size = 4 << 20;
        OneSided window = OneSided.open(self, size);
        try {
            if (self.rank() == 1) {
                return "rank 1: " + window.put(0, size / 2, 0, size / 2) + " then " + window.signal(0);
            }
            int put = window.await(1, 1);
            return "rank 0: " + put + " then " + window.await(1, 1) + " " + nccl.ncclGetLastError(self.comm());
        } finally {
            nccl.ncclCommAbort(self.comm());
            Rank.check(nccl.ncclMemFree(window.memory()), "ncclMemFree");
        }
    }

    /** Ranks 0 and 2 go on without rank 1; rank 2 comes when rank 0 has given up once and waits again. */
    private static String lateShrink(Rank self) throws Exception {
        if (self.rank() == 1) {
            nccl.ncclCommAbort(self.comm());
            return "rank 1";
        }
        int failures = 0;
        if (self.rank() == 2) {
            GAVE_UP.get().await("ncclCommShrink");
        }
        Rank rest = null;
        while (rest == null) {
            try {
                rest = HostEngineRegroupTest.shrink(self, nccl.NCCL_SHRINK_ABORT, 1);
            } catch (Rank.NcclFailure late) {
                failures++;
                GAVE_UP.complete(NativeWait.ofThisThread());
            }
        }
        nccl.ncclCommAbort(self.comm());
        float sum = HostEngineRegroupTest.sum(rest, 1 + self.rank());
        rest.destroy();
        return "rank " + self.rank() + ": " + failures + " failures, then " + sum;
    }

    private static int make(String call, Rank self) {
        try (LongPointer child = new LongPointer(1);
                IntPointer last = new IntPointer(1).put(RANKS - 1)) {
            if (call.equals("CommSplit")) {
                return ended(nccl.ncclCommSplit(self.comm(), 0, 0, child.address(), 0L), child);
            }
            // Rank 2 is excluded.
            return self.rank() == RANKS - 1
                    ? nccl.ncclSuccess
                    : ended(nccl.ncclCommShrink(self.comm(), last.address(), 1, child.address(), 0L, 0), child);
        }
    }

    private static int ended(int result, LongPointer child) {
        if (result == nccl.ncclSuccess) {
            Rank.check(nccl.ncclCommDestroy(child.get()), "ncclCommDestroy");
        }
        return result;
    }

    /** The result of a call that makes a communicator of this one, once all ranks are done. */
    private static String made(Rank self, IntSupplier call) throws InterruptedException {
        int result = call.getAsInt();
        String text = result == nccl.ncclSuccess ? "" : " " + nccl.ncclGetLastError(0L);
        MADE.countDown();
        MADE.await();
        nccl.ncclCommAbort(self.comm());
        return "rank " + self.rank() + ": " + result + text;
    }

    /** The three ranks and a newcomer. */
    private static List<String> grow() throws Exception {
        String first = Rank.newId();
        CompletableFuture<String> growId = new CompletableFuture<>();
        List<Callable<String>> ranks = new ArrayList<>();
        for (int r = 0; r < RANKS; r++) {
            int rank = r;
            ranks.add(() -> {
                Rank self = Rank.join(first, rank, RANKS);
                if (rank == 0) {
                    try (ncclUniqueId id = new ncclUniqueId()) {
                        Rank.check(nccl.ncclCommGetUniqueId(self.comm(), id.address()), "ncclCommGetUniqueId");
                        growId.complete(Rank.text(id));
                    }
                }
                return made(self, () -> grow(self.comm(), null, -1));
            });
        }
        ranks.add(() -> {
            try (ncclUniqueId id = Rank.uniqueId(growId.get())) {
                int result = grow(0L, id, RANKS);
                return "newcomer: " + result + (result == nccl.ncclSuccess ? "" : " " + nccl.ncclGetLastError(0L));
            }
        });
        return HostEngineTest.together(ranks);
    }

    private static int grow(long comm, ncclUniqueId id, int rank) {
        try (LongPointer child = new LongPointer(1)) {
            return ended(
                    nccl.ncclCommGrow(comm, RANKS + 1, id == null ? 0L : id.address(), rank, child.address(), 0L),
                    child);
        }
    }

    /** One rank alone. */
    private static String join() {
        Rank self;
        try {
            self = Rank.join(Rank.newId(), 0, 1);
        } catch (Rank.NcclFailure refused) {
            return refused.getMessage();
        }
        return calls(self);
    }
}
