package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.FloatPointer;

/**
 * Three ranks in threads of a process with faults: {@code main(scenario)}. Prints a line for each rank: its number, how many
 * calls succeeded, the code of the next, the text, and for how many milliseconds the rank was at it.
 */
final class FaultScenarios {
    private static final int RANKS = 3;
    private static final int CALLS = 4;

    /** The thread of rank 0, when its shrink has failed once; see {@link #lateShrink}. */
    private static final CompletableFuture<NativeWait> GAVE_UP = new CompletableFuture<>();

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
