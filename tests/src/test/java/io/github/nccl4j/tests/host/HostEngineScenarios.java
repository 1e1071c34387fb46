package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl.ncclComm;
import io.github.nccl4j.nccl.ncclUniqueId;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.PointerPointer;

/** What one rank does in a process of its own: {@code main(scenario, id, rank, ranks)}. Prints what it saw. */
final class HostEngineScenarios {
    private HostEngineScenarios() {}

    public static void main(String... args) throws Exception {
        String id = args[1];
        int rank = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[3]);
        switch (args[0]) {
            case "suite" -> suite(Rank.join(id, rank, count));
            case "shared-memory" -> sharedMemory(Rank.join(id, rank, count));
            case "all-reduce-for-ever" -> allReduceForEver(Rank.join(id, rank, count));
            case "all-to-all-for-ever" -> allToAllForEver(Rank.join(id, rank, count));
            case "idle" -> idle(Rank.join(id, rank, count));
            case "puts" -> puts(Rank.join(id, rank, count));
            case "two-ranks" -> HostEngineDeviceTest.runTwo(id, rank, count);
            case "put-for-ever" -> putForEver(Rank.join(id, rank, count));
            case "wait-for-ever" -> waitForEver(Rank.join(id, rank, count));
            case "survive" -> survive(Rank.join(id, rank, count));
            case "cycles" -> cycles(count, HostEngineScenarios::createAndDestroy);
            case "regroup-cycles" -> cycles(count, HostEngineScenarios::windowsShrinkAndGrow);
            case "join" -> join(id, rank, count);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void suite(Rank self) {
        int cases = new CollectiveSuite(self).run();
        self.destroy();
        System.out.println(cases + " cases");
    }

    /** Prints how many connections of this process have memory, how much the rank says to hold, and what is left at the end. */
    private static void sharedMemory(Rank self) throws IOException {
        try (FloatPointer data = new FloatPointer(1)) {
            Rank.check(
                    nccl.ncclAllReduce(data.address(), data.address(), 1, nccl.ncclFloat, nccl.ncclSum, self.comm(), 0),
                    "ncclAllReduce");
        }
        long[] held = new long[1];
        Rank.check(nccl.ncclCommMemStats(self.comm(), nccl.ncclStatGpuMemPersist, held), "ncclCommMemStats");
        System.out.print(mappedConnections() + " connections, " + (held[0] >> 20) + " MiB");
        self.destroy();
        System.out.println(", then " + mappedConnections());
    }

    private static long mappedConnections() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/maps")).stream()
                .filter(line -> line.contains("/memfd:nccl4j"))
                .count();
    }

    private static void allReduceForEver(Rank self) {
        int elements = 100_000;
        try (FloatPointer data = new FloatPointer(elements)) {
            forEver(
                    self,
                    () -> nccl.ncclAllReduce(
                            data.address(), data.address(), elements, nccl.ncclFloat, nccl.ncclMax, self.comm(), 0));
        }
    }

    /** With blocks that are copied from the memory of the other process. */
    private static void allToAllForEver(Rank self) {
        int elements = 300_000;
        try (FloatPointer send = new FloatPointer((long) elements * self.count());
                FloatPointer recv = new FloatPointer((long) elements * self.count())) {
            forEver(
                    self,
                    () -> nccl.ncclAlltoAll(send.address(), recv.address(), elements, nccl.ncclFloat, self.comm(), 0));
        }
    }

    /** Repeats a call until it fails. Ready when all ranks have made the first one. */
    private static void forEver(Rank self, IntSupplier call) {
        int result = call.getAsInt();
        System.out.println("ready");
        while (result == nccl.ncclSuccess) {
            result = call.getAsInt();
        }
        System.out.println(result + " " + nccl.ncclGetLastError(self.comm()));
        nccl.ncclCommAbort(self.comm());
    }

    /** Every rank puts a block to every rank, itself too, in rounds of growing size. */
    private static void puts(Rank self) {
        int block = 1 << 20;
        try (OneSided window = OneSided.open(self, 2L * block * self.count());
                BytePointer bytes = window.bytes()) {
            long received = (long) block * self.count();
            for (int size = 1; size <= block; size *= 8) {
                for (int to = 0; to < self.count(); to++) {
                    bytes.put((long) block * to, (byte) (size + 10 * self.rank() + to));
                    bytes.put((long) block * to + size - 1, (byte) (size + 10 * self.rank() + to));
                    Rank.check(
                            window.put((long) block * to, size, to, received + (long) block * self.rank()),
                            "ncclPutSignal");
                }
                for (int from = 0; from < self.count(); from++) {
                    Rank.check(window.await(1, from), "ncclWaitSignal");
                    byte expected = (byte) (size + 10 * from + self.rank());
                    long start = received + (long) block * from;
                    if (bytes.get(start) != expected || bytes.get(start + size - 1) != expected) {
                        throw new AssertionError(size + " bytes from " + from + ": " + bytes.get(start));
                    }
                }
                // Nobody may put into the next round before all have looked.
                for (int to = 0; to < self.count(); to++) {
                    Rank.check(window.signal(to), "ncclSignal");
                }
                for (int from = 0; from < self.count(); from++) {
                    Rank.check(window.await(1, from), "ncclWaitSignal");
                }
            }
        }
        self.destroy();
        System.out.println("all there");
    }

    private static void putForEver(Rank self) {
        OneSided window = OneSided.open(self, 4 << 20);
        int next = (self.rank() + 1) % self.count();
        int previous = (self.rank() + self.count() - 1) % self.count();
        forEver(self, () -> {
            int result = window.put(0, 2 << 20, next, 2 << 20);
            return result == nccl.ncclSuccess ? window.await(1, previous) : result;
        });
    }

    private static void waitForEver(Rank self) throws IOException {
        OneSided window = OneSided.open(self, 4096);
        NativeWait.ofThisThread().whenInside("ncclWaitSignal", () -> {
            System.out.println("ready");
            return null;
        });
        System.out.println(
                window.await(1, (self.rank() + 1) % self.count()) + " " + nccl.ncclGetLastError(self.comm()));
        nccl.ncclCommAbort(self.comm());
    }

    /** Reduces until rank 1 dies, and goes on without it. */
    private static void survive(Rank self) {
        int result = nccl.ncclSuccess;
        System.out.println("ready");
        try (FloatPointer data = new FloatPointer(100_000)) {
            while (result == nccl.ncclSuccess) {
                result = nccl.ncclAllReduce(
                        data.address(), data.address(), 100_000, nccl.ncclFloat, nccl.ncclMax, self.comm(), 0);
            }
        }
        Rank rest = HostEngineRegroupTest.shrink(self, nccl.NCCL_SHRINK_ABORT, 1);
        nccl.ncclCommAbort(self.comm());
        float first = HostEngineRegroupTest.sum(rest, self.rank());
        float second = HostEngineRegroupTest.sum(rest, self.rank());
        System.out.println(result + " " + Math.round(first) + " " + second);
        rest.destroy();
    }

    /** Runs the body often, and prints what the process has more of than after a few rounds. */
    private static void cycles(int count, IntConsumer body) throws Exception {
        long own = HostEngineTest.nativeThreads();
        for (int i = 0; i < count / 5; i++) {
            body.accept(i);
        }
        Waiting.until("end of the engine's threads", () -> HostEngineTest.nativeThreads() <= own);
        // Reading files comes first: the JVM keeps a socket of its own from then on.
        long threads = status("Threads:");
        long memory = status("VmRSS:");
        long files = HostEngineTest.descriptors();
        for (int i = 0; i < count; i++) {
            body.accept(i);
        }
        Waiting.until(
                "no more files than " + files + " and threads than " + threads,
                () -> HostEngineTest.descriptors() <= files && status("Threads:") <= threads);
        System.out.println((HostEngineTest.descriptors() - files)
                + " files, "
                + (status("Threads:") - threads)
                + " threads, "
                + (status("VmRSS:") - memory)
                + " KiB more");
    }

    private static long status(String name) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith(name)) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        throw new IllegalArgumentException(name);
    }

    private static void createAndDestroy(int round) {
        int ranks = 1 + round % 2;
        try (LongPointer comms = new LongPointer(ranks)) {
            Rank.check(nccl.ncclCommInitAll(comms.address(), ranks, 0L), "ncclCommInitAll");
            for (int r = 0; r < ranks; r++) {
                Rank.check(nccl.ncclCommDestroy(comms.get(r)), "ncclCommDestroy");
            }
        }
    }

    /** Two ranks with a window, of which one goes on alone, revokes that, and is joined by another. */
    private static void windowsShrinkAndGrow(int round) {
        try (LongPointer comms = new LongPointer(2);
                LongPointer windows = new LongPointer(2);
                LongPointer memory = new LongPointer(1);
                LongPointer alone = new LongPointer(1);
                LongPointer grown = new LongPointer(2);
                IntPointer list = new IntPointer(1).put(1);
                ncclUniqueId id = new ncclUniqueId()) {
            Rank.check(nccl.ncclCommInitAll(comms.address(), 2, 0L), "ncclCommInitAll");
            Rank.check(nccl.ncclMemAlloc(memory.address(), 8192), "ncclMemAlloc");
            int flags = nccl.NCCL_WIN_COLL_SYMMETRIC;
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r < 2; r++) {
                long page = memory.get() + 4096L * r;
                Rank.check(
                        nccl.ncclCommWindowRegister(comms.get(r), page, 4096, windows.address() + 8L * r, flags),
                        "ncclCommWindowRegister");
            }
            Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            Rank.check(
                    new OneSided(new Rank(0, 2, comms.get(0)), memory.get(), 4096, windows.get(0)).put(0, 4096, 1, 0),
                    "ncclPutSignal");
            Rank.check(OneSided.await(new Rank(1, 2, comms.get(1)), 1, 0), "ncclWaitSignal");
            Rank.check(nccl.ncclCommShrink(comms.get(0), list.address(), 1, alone.address(), 0L, 1), "ncclCommShrink");
            Rank.check(nccl.ncclCommRevoke(alone.get(), 0), "ncclCommRevoke");
            Rank.check(nccl.ncclCommGetUniqueId(alone.get(), id.address()), "ncclCommGetUniqueId");
            // Every other round leaves the id unused.
            if (round % 2 == 0) {
                Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
                Rank.check(nccl.ncclCommGrow(alone.get(), 2, 0L, -1, grown.address(), 0L), "ncclCommGrow");
                Rank.check(nccl.ncclCommGrow(0L, 2, id.address(), 1, grown.address() + 8, 0L), "ncclCommGrow");
                Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
                Rank.check(nccl.ncclCommDestroy(grown.get(0)), "ncclCommDestroy");
                Rank.check(nccl.ncclCommDestroy(grown.get(1)), "ncclCommDestroy");
            }
            Rank.check(nccl.ncclCommDestroy(alone.get()), "ncclCommDestroy");
            Rank.check(nccl.ncclCommDestroy(comms.get(0)), "ncclCommDestroy");
            Rank.check(nccl.ncclCommDestroy(comms.get(1)), "ncclCommDestroy");
            Rank.check(nccl.ncclMemFree(memory.get()), "ncclMemFree");
        }
    }

    /** Calls nothing but looks at the communicator's state, as a watchdog does. */
    private static void idle(Rank self) throws InterruptedException {
        System.out.println("ready");
        int[] state = new int[1];
        while (nccl.ncclCommGetAsyncError(self.comm(), state) == nccl.ncclSuccess && state[0] == nccl.ncclSuccess) {
            Thread.sleep(20);
        }
        System.out.println(state[0] + " " + nccl.ncclGetLastError(self.comm()));
        nccl.ncclCommAbort(self.comm());
    }

    private static void join(String id, int rank, int count) {
        try (ncclUniqueId uniqueId = Rank.uniqueId(id);
                PointerPointer<ncclComm> cell = new PointerPointer<>(1)) {
            int result = nccl.ncclCommInitRank(cell, count, uniqueId, rank);
            System.out.println(result + " " + nccl.ncclGetLastError(0L) + " " + (cell.get(ncclComm.class) == null));
        }
    }
}
