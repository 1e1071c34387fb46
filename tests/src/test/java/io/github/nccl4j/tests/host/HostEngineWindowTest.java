package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl.ncclComm;
import io.github.nccl4j.nccl.ncclConfig_t;
import io.github.nccl4j.nccl.ncclUniqueId;
import io.github.nccl4j.nccl.ncclWaitSignalDesc_t;
import io.github.nccl4j.tests.ChildJvm;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Windows, puts and signals of the host engine. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostEngineWindowTest {

    @Test
    void aPutNeedsNoCallOfItsTarget() throws Exception {
        // More than sockets buffer, so that somebody must have taken it.
        long size = 64 << 20;
        CountDownLatch put = new CountDownLatch(1);
        HostEngineTest.inThreads(2, self -> {
            try (OneSided mine = OneSided.open(self, size);
                    BytePointer bytes = mine.bytes()) {
                if (self.rank() == 0) {
                    for (long i = 0; i < size; i += 1 << 10) {
                        bytes.put(i, (byte) (i >> 10));
                    }
                    Rank.check(mine.put(0, size, 1, 0), "ncclPutSignal");
                    put.countDown();
                    Rank.check(mine.await(1, 1), "ncclWaitSignal");
                } else {
                    assertTrue(put.await(60, TimeUnit.SECONDS), "the put waited for a call of its target");
                    Rank.check(mine.await(1, 0), "ncclWaitSignal");
                    for (long i = 0; i < size; i += 1 << 10) {
                        assertEquals((byte) (i >> 10), bytes.get(i), "byte " + i);
                    }
                    Rank.check(mine.signal(0), "ncclSignal");
                }
            }
            self.destroy();
            return null;
        });
    }

    @Test
    void everyRankPutsToEveryRankBetweenProcesses() {
        String id = Rank.newId();
        List<ChildJvm.Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < 3; rank++) {
            ranks.add(new ChildJvm()
                    .property("nccl4j.engine", "host")
                    .start(HostEngineScenarios.class, "puts", id, "" + rank, "3"));
        }
        for (ChildJvm.Running rank : ranks) {
            ChildJvm.Outcome outcome = rank.await();
            assertEquals(0, outcome.exitCode(), outcome.output());
            assertEquals("all there\n", outcome.output());
        }
    }

    @Test
    void signalsAreCountedByRankAndConsumed() throws Exception {
        CompletableFuture<NativeWait> again = new CompletableFuture<>();
        HostEngineTest.inThreads(3, self -> {
            // Signals need no window.
            if (self.rank() > 0) {
                for (int i = 0; i < 3; i++) {
                    Rank.check(OneSided.signal(self, 0), "ncclSignal");
                }
                Rank.check(OneSided.await(self, 1, 0), "ncclWaitSignal");
                if (self.rank() == 1) {
                    // Rank 0 would not wait if a consumed signal came again.
                    again.get().await("ncclWaitSignal");
                    Rank.check(OneSided.signal(self, 0), "ncclSignal");
                }
            } else {
                Rank.check(OneSided.signal(self, 0), "ncclSignal");
                Rank.check(OneSided.await(self, 1, 0), "ncclWaitSignal");
                Rank.check(OneSided.await(self, 2, 1), "ncclWaitSignal");
                try (ncclWaitSignalDesc_t both = new ncclWaitSignalDesc_t(2)) {
                    both.getPointer(0).opCnt(1).peer(1).sigIdx(0).ctx(0);
                    both.getPointer(1).opCnt(3).peer(2).sigIdx(0).ctx(0);
                    Rank.check(nccl.ncclWaitSignal(2, both.address(), self.comm(), 0L), "ncclWaitSignal");
                }
                Rank.check(OneSided.signal(self, 1), "ncclSignal");
                Rank.check(OneSided.signal(self, 2), "ncclSignal");
                again.complete(NativeWait.ofThisThread());
                Rank.check(OneSided.await(self, 1, 1), "ncclWaitSignal");
            }
            self.destroy();
            return null;
        });
    }

    /** There are as many as the configuration says, and a child without one takes that over. */
    @Test
    void signalsAreCountedByContextAndIndex() throws Exception {
        String id = Rank.newId();
        CompletableFuture<NativeWait> waits = new CompletableFuture<>();
        HostEngineTest.together(List.of(() -> countApart(id, 0, waits), () -> countApart(id, 1, waits)));
    }

    private static Void countApart(String id, int rank, CompletableFuture<NativeWait> waits) throws Exception {
        int peer = 1 - rank;
        try (ncclConfig_t config = new ncclConfig_t();
                ncclUniqueId uniqueId = Rank.uniqueId(id);
                PointerPointer<ncclComm> cell = new PointerPointer<>(1)) {
            config.numRmaCtx(2).numRmaSig(3);
            Rank.check(nccl.ncclCommInitRankConfig(cell, 2, uniqueId, rank, config), "ncclCommInitRankConfig");
            Rank self = new Rank(rank, 2, cell.get(ncclComm.class).address());
            try (OneSided mine = OneSided.open(self, 4096)) {
                if (rank == 0) {
                    Rank.check(nccl.ncclSignal(peer, 2, 1, 0, self.comm(), 0L), "ncclSignal");
                    Rank.check(nccl.ncclSignal(peer, 1, 1, 0, self.comm(), 0L), "ncclSignal");
                    Rank.check(
                            nccl.ncclPutSignal(
                                    mine.memory(), 1, nccl.ncclInt8, peer, mine.window(), 0, 2, 0, 0, self.comm(), 0L),
                            "ncclPutSignal");
                    // Rank 1 would not wait if one of these counted.
                    waits.get().await("ncclWaitSignal");
                    Rank.check(nccl.ncclSignal(peer, 1, 0, 0, self.comm(), 0L), "ncclSignal");
                } else {
                    waits.complete(NativeWait.ofThisThread());
                    awaitOne(self, peer, 1, 0);
                    awaitOne(self, peer, 2, 0);
                    awaitOne(self, peer, 1, 1);
                    awaitOne(self, peer, 2, 1);
                }
                invalid(nccl.ncclSignal(peer, 3, 0, 0, self.comm(), 0L), "sigIdx 3, expected at least 0 and less than");
                invalid(nccl.ncclSignal(peer, -1, 0, 0, self.comm(), 0L), "sigIdx -1");
                invalid(nccl.ncclSignal(peer, 0, 2, 0, self.comm(), 0L), "config.numRmaCtx of the communicator, 2");
            }
            Rank.check(nccl.ncclCommSplit(self.comm(), 0, rank, cell.address(), 0), "ncclCommSplit");
            Rank heir = new Rank(rank, 2, cell.get(ncclComm.class).address());
            Rank.check(nccl.ncclSignal(peer, 2, 1, 0, heir.comm(), 0L), "ncclSignal");
            awaitOne(heir, peer, 2, 1);
            config.numRmaCtx(nccl.NCCL_CONFIG_UNDEF_INT).numRmaSig(0);
            Rank.check(nccl.ncclCommSplit(self.comm(), 0, rank, cell.address(), config.address()), "ncclCommSplit");
            Rank other = new Rank(rank, 2, cell.get(ncclComm.class).address());
            invalid(nccl.ncclSignal(peer, 0, 1, 0, other.comm(), 0L), "config.numRmaCtx of the communicator, 1");
            invalid(nccl.ncclSignal(peer, 0, 0, 0, other.comm(), 0L), "config.numRmaSig of the communicator, 0");
            other.destroy();
            heir.destroy();
            self.destroy();
            return null;
        }
    }

    private static void awaitOne(Rank self, int peer, int index, int context) {
        try (ncclWaitSignalDesc_t descriptor = new ncclWaitSignalDesc_t()) {
            descriptor.opCnt(1).peer(peer).sigIdx(index).ctx(context);
            Rank.check(nccl.ncclWaitSignal(1, descriptor.address(), self.comm(), 0L), "ncclWaitSignal");
        }
    }

    @Test
    void oneThreadDrivesTheWindowsOfAllRanksInGroups() {
        int n = 3;
        int bytes = 5000;
        try (PointerPointer<ncclComm> cells = new PointerPointer<>(n);
                LongPointer windows = new LongPointer(n).put(7L).put(1, 7L).put(2, 7L);
                PointerPointer<Pointer> memory = new PointerPointer<>(1)) {
            Rank.check(nccl.ncclCommInitAll(cells, n, (int[]) null), "ncclCommInitAll");
            Rank.check(nccl.ncclMemAlloc(memory, n * 8192L), "ncclMemAlloc");
            long base = memory.get(Pointer.class, 0).address();
            List<Rank> ranks = new ArrayList<>();
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            for (int r = 0; r < n; r++) {
                ranks.add(new Rank(r, n, cells.get(ncclComm.class, r).address()));
                Rank.check(
                        nccl.ncclCommWindowRegister(
                                ranks.get(r).comm(),
                                base + 8192L * r,
                                8192,
                                windows.address() + 8L * r,
                                nccl.NCCL_WIN_COLL_SYMMETRIC),
                        "ncclCommWindowRegister");
                assertEquals(0, windows.get(r), "no window before the end of the group");
            }
            Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
            Rank.check(nccl.ncclGroupStart(), "ncclGroupStart");
            try (BytePointer data = OneSided.at(base, n * 8192L)) {
                for (int r = 0; r < n; r++) {
                    Rank self = ranks.get(r);
                    assertNotEquals(0, windows.get(r));
                    OneSided mine = new OneSided(self, base + 8192L * r, 8192, windows.get(r));
                    data.put(8192L * r, (byte) (r + 1)).put(8192L * r + bytes - 1, (byte) (r + 11));
                    // The upper half of the page after it: source and target are different bytes.
                    Rank.check(mine.put(0, 100, (r + 1) % n, 6000), "ncclPutSignal");
                    Rank.check(mine.put(bytes - 1, 1, (r + 1) % n, 8191), "ncclPutSignal");
                    Rank.check(mine.await(2, (r + n - 1) % n), "ncclWaitSignal");
                }
                Rank.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
                for (int r = 0; r < n; r++) {
                    int from = (r + n - 1) % n;
                    assertEquals(from + 1, data.get(8192L * r + 6000));
                    assertEquals(from + 11, data.get(8192L * r + 8191));
                }
            }
            // Communicators may go with their windows open.
            ranks.forEach(Rank::destroy);
            Rank.check(nccl.ncclMemFree(base), "ncclMemFree");
        }
    }

    @Test
    void theRulesOfNcclAndTheBounds() throws Exception {
        HostEngineTest.inThreads(2, self -> {
            long comm = self.comm();
            int peer = 1 - self.rank();
            try (OneSided mine = OneSided.open(self, 8192);
                    LongPointer cell = new LongPointer(1);
                    PointerPointer<Pointer> plain = new PointerPointer<>(1)) {
                Rank.check(nccl.ncclWinGetUserPtr(comm, mine.window(), plain.address()), "ncclWinGetUserPtr");
                assertEquals(mine.memory(), plain.get(Pointer.class, 0).address());
                invalid(nccl.ncclWinGetUserPtr(comm, 12345L, plain.address()), "no window");
                invalid(nccl.ncclCommWindowRegister(comm, mine.memory() + 8, 64, cell.address(), 0), "4096");
                invalid(nccl.ncclCommWindowRegister(comm, 0L, 64, cell.address(), 0), "buffer");
                invalid(nccl.ncclCommWindowRegister(comm, mine.memory(), 0, cell.address(), 0), "size 0");
                invalid(nccl.ncclCommWindowRegister(comm, mine.memory(), 64, 0L, 0), "win");
                invalid(mine.put(0, 8193, peer, 0), "8193", "8192");
                invalid(mine.put(0, 2, peer, 8191), "8191", "rank " + peer);
                invalid(mine.put(0, 1, peer, -1L), "rank " + peer);
                invalid(mine.put(8191, 2, peer, 0), "offset 8191");
                invalid(mine.put(0, 1, 2, 0), "peer 2", "0..1");
                long to = mine.window();
                long from = mine.memory();
                invalid(nccl.ncclPutSignal(from, 1, nccl.ncclInt8, peer, to, 0, 1, 0, 0, comm, 0L), "sigIdx 1");
                invalid(nccl.ncclPutSignal(from, 1, nccl.ncclInt8, peer, to, 0, 0, 1, 0, comm, 0L), "ctx 1");
                invalid(nccl.ncclPutSignal(from, 1, nccl.ncclInt8, peer, to, 0, 0, 0, 1, comm, 0L), "flags 1");
                invalid(nccl.ncclPutSignal(from, 1, nccl.ncclInt8, peer, 0L, 0, 0, 0, 0, comm, 0L), "peerWin");
                invalid(nccl.ncclPutSignal(cell.address(), 1, nccl.ncclInt8, peer, to, 0, 0, 0, 0, comm, 0L), "local");
                invalid(nccl.ncclSignal(peer, 0, 0, 2, comm, 0L), "flags 2");
                invalid(nccl.ncclWaitSignal(0, 0L, comm, 0L), "signalDescs");
                invalid(mine.await(0, peer), "opCnt");
                // A window without the flag can be the target, but not the source.
                Rank.check(nccl.ncclMemAlloc(plain, 4096), "ncclMemAlloc");
                long source = plain.get(Pointer.class, 0).address();
                Rank.check(
                        nccl.ncclCommWindowRegister(comm, source, 4096, cell.address(), nccl.NCCL_WIN_DEFAULT),
                        "ncclCommWindowRegister");
                invalid(nccl.ncclPutSignal(source, 1, nccl.ncclInt8, peer, to, 0, 0, 0, 0, comm, 0L), "SYMMETRIC");
                Rank.check(
                        nccl.ncclPutSignal(from, 1, nccl.ncclInt8, peer, cell.get(), 0, 0, 0, 0, comm, 0L),
                        "ncclPutSignal");
                Rank.check(mine.await(1, peer), "ncclWaitSignal");
                Rank.check(nccl.ncclCommWindowDeregister(comm, cell.get()), "ncclCommWindowDeregister");
                invalid(nccl.ncclCommWindowDeregister(comm, cell.get()), "deregistered");
                Rank.check(nccl.ncclCommWindowDeregister(comm, 0L), "ncclCommWindowDeregister(null)");
                Rank.check(nccl.ncclMemFree(source), "ncclMemFree");
            }
            self.destroy();
            return null;
        });
    }

    private static void invalid(int result, String... words) {
        String text = nccl.ncclGetLastError(0L);
        assertEquals(nccl.ncclInvalidArgument, result, text);
        for (String word : words) {
            assertTrue(text.contains(word), () -> "'" + word + "' is not in: " + text);
        }
    }

    @Test
    void aPutIntoADeregisteredWindowIsNamedAtItsTarget() throws Exception {
        List<String> texts = HostEngineTest.inThreads(2, self -> {
            OneSided mine = OneSided.open(self, 4096);
            if (self.rank() == 1) {
                mine.close();
                Rank.check(OneSided.signal(self, 0), "ncclSignal");
                int result = OneSided.await(self, 1, 0);
                String text = result + " " + nccl.ncclGetLastError(self.comm());
                nccl.ncclCommAbort(self.comm());
                return text;
            }
            Rank.check(mine.await(1, 1), "ncclWaitSignal");
            Rank.check(mine.put(0, 10, 1, 0), "ncclPutSignal");
            mine.await(1, 1);
            nccl.ncclCommAbort(self.comm());
            return "";
        });
        assertTrue(texts.get(1).startsWith(nccl.ncclInvalidUsage + " rank 0 put 10 bytes"), texts.toString());
    }

    @Test
    void signalsOutliveTheCommunicatorThatSentThemButNoMoreCome() throws Exception {
        CountDownLatch destroyed = new CountDownLatch(1);
        List<String> texts = HostEngineTest.inThreads(2, self -> {
            OneSided mine = OneSided.open(self, 1 << 20);
            if (self.rank() == 0) {
                Rank.check(mine.put(0, 1 << 20, 1, 0), "ncclPutSignal");
                Rank.check(mine.signal(1), "ncclSignal");
                self.destroy();
                destroyed.countDown();
                return "";
            }
            destroyed.await();
            Rank.check(mine.await(2, 0), "ncclWaitSignal");
            int result = mine.await(1, 0);
            String text = result + " " + nccl.ncclGetLastError(self.comm());
            nccl.ncclCommAbort(self.comm());
            return text;
        });
        assertTrue(texts.get(1).startsWith(nccl.ncclRemoteError + " rank 0 (pid "), texts.toString());
        assertTrue(texts.get(1).contains(") closed its communicator"), texts.toString());
        assertTrue(texts.get(1).contains("1 from rank 0"), texts.toString());
    }

    @Test
    void abortEndsTheWaitForASignal() throws Exception {
        CyclicBarrier bothWait = new CyclicBarrier(2);
        List<String> texts = HostEngineTest.inThreads(2, self -> {
            OneSided mine = OneSided.open(self, 4096);
            CompletableFuture<Integer> abort = NativeWait.ofThisThread().whenInside("ncclWaitSignal", () -> {
                bothWait.await();
                return nccl.ncclCommAbort(self.comm());
            });
            int result = mine.await(1, 1 - self.rank());
            return result != nccl.ncclSuccess && abort.get() == nccl.ncclSuccess ? "ended" : "" + result;
        });
        assertEquals(List.of("ended", "ended"), texts);
    }
}
