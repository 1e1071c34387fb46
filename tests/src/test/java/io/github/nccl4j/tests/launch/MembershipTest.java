package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.testing.Waiting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of {@link Membership}: lost, silent and orderly ended ranks. Ranks are threads; a proxy ends or holds their connections. */
@Timeout(60)
class MembershipTest {
    private static final String HEARTBEAT = "nccl4j.store.heartbeat";
    private static final String PATIENCE = "nccl4j.store.patience";

    private final Job job = new Job();
    private final List<Proxy> proxies = new ArrayList<>();
    private List<TcpStore> stores;

    @AfterEach
    void end() throws Exception {
        System.clearProperty(HEARTBEAT);
        System.clearProperty(PATIENCE);
        for (Proxy proxy : proxies) {
            proxy.close();
        }
        job.close();
    }

    /** Opens the stores of all ranks; those above 0 have a proxy each. */
    private void open(int world) throws Exception {
        List<CompletableFuture<TcpStore>> opening = new ArrayList<>();
        opening.add(job.openAsync(job.rank(0, world), Job.settings()));
        for (int rank = 1; rank < world; rank++) {
            Proxy proxy = new Proxy(job.port());
            proxies.add(proxy);
            opening.add(job.openAsync(job.rankVia(proxy, rank, world), Job.settings()));
        }
        stores = opening.stream().map(CompletableFuture::join).toList();
    }

    private Proxy proxyOf(int rank) {
        return proxies.get(rank - 1);
    }

    private static Membership enter(Rendezvous rank, BlockingQueue<LostRank> told) {
        return rank.membership("group", rank.rank(), told::add).orElseThrow();
    }

    private static BlockingQueue<LostRank> queue() {
        return new LinkedBlockingQueue<>();
    }

    private static LostRank next(BlockingQueue<LostRank> told) throws InterruptedException {
        LostRank lost = told.poll(Job.LONG.toSeconds(), TimeUnit.SECONDS);
        assertTrue(lost != null, "nobody was reported as lost");
        return lost;
    }

    /** Returns when the store has handled all earlier requests of the ranks, and sent the notices that follow from them. */
    private void settle() {
        for (TcpStore store : stores) {
            store.gone();
        }
        for (TcpStore store : stores) {
            store.gone();
        }
    }

    @Test
    void lostRankIsReportedToOtherMembers() throws Exception {
        open(4);
        BlockingQueue<LostRank> first = queue();
        BlockingQueue<LostRank> second = queue();
        BlockingQueue<LostRank> other = queue();
        enter(stores.get(0), first);
        enter(stores.get(1), second);
        enter(stores.get(2), queue());
        stores.get(3).membership("another", 3, other::add).orElseThrow();
        settle();
        proxyOf(2).cut();
        for (BlockingQueue<LostRank> told : List.of(first, second)) {
            LostRank lost = next(told);
            assertTrue(
                    lost.toString()
                            .matches("rank 2 \\(127\\.0\\.0\\.1, process "
                                    + ProcessHandle.current().pid()
                                    + "\\) is lost: its connection to the store has ended( \\(.+\\))?"),
                    lost.toString());
        }
        // Who enters later is told, too.
        BlockingQueue<LostRank> late = queue();
        enter(stores.get(3), late);
        assertEquals(2, next(late).rank());
        assertTrue(other.isEmpty());
    }

    @Test
    void numbersAreThoseOfTheGroup() throws Exception {
        open(3);
        BlockingQueue<LostRank> told = queue();
        stores.get(0).scope("scope").membership("group", 7, told::add).orElseThrow();
        stores.get(2).scope("scope").membership("group", 5, lost -> {}).orElseThrow();
        stores.get(1).scope("other").membership("group", 6, lost -> {}).orElseThrow();
        settle();
        proxyOf(1).cut();
        proxyOf(2).cut();
        assertEquals(5, next(told).rank());
        assertTrue(told.isEmpty());
    }

    /** A rank that leaves the group, or closes its store, may end. */
    @Test
    void orderlyEndIsNoLoss() throws Exception {
        open(4);
        BlockingQueue<LostRank> told = queue();
        enter(stores.get(0), told);
        Membership second = enter(stores.get(1), queue());
        enter(stores.get(2), queue());
        enter(stores.get(3), queue());
        settle();
        second.close();
        second.close();
        // The store handles the requests of a rank in order.
        stores.get(1).gone();
        proxyOf(1).cut();
        stores.get(2).close();
        proxyOf(2).cut();
        Waiting.until("end of ranks 1 and 2", () -> stores.get(0).gone().equals(List.of(1, 2)));
        // The loss that follows is the first that is reported.
        proxyOf(3).cut();
        assertEquals(3, next(told).rank());
        assertTrue(told.isEmpty());
    }

    @Test
    void endOfStoreIsLossOfRank0() throws Exception {
        open(3);
        BlockingQueue<LostRank> told = queue();
        BlockingQueue<LostRank> without = queue();
        enter(stores.get(0), queue());
        enter(stores.get(1), told);
        stores.get(1).membership("without rank 0", 1, without::add).orElseThrow();
        stores.get(2).membership("without rank 0", 2, lost -> {}).orElseThrow();
        settle();
        proxyOf(1).cut();
        LostRank lost = next(told);
        assertEquals(0, lost.rank());
        assertTrue(lost.reason().contains("keeps the store"), lost.toString());
        assertTrue(without.isEmpty());
    }

    @Test
    void rank0ThatEndsAsMemberIsLost() throws Exception {
        open(2);
        BlockingQueue<LostRank> told = queue();
        enter(stores.get(0), queue());
        enter(stores.get(1), told);
        settle();
        // As the shutdown hook of a process does that has not closed its communicators: the server ends first.
        stores.get(0).close();
        RendezvousException ended =
                assertThrows(RendezvousException.class, () -> stores.get(1).set("key", new byte[0]));
        assertTrue(ended.getMessage().contains("rank 0 has closed its store"), ended.getMessage());
        // Closing a store in order is no loss.
        assertTrue(told.isEmpty());
    }

    @Test
    void silenceIsReportedAndIsNoLoss() throws Exception {
        System.setProperty(HEARTBEAT, "0.1");
        open(3);
        BlockingQueue<LostRank> told = queue();
        Membership first = enter(stores.get(0), told);
        enter(stores.get(1), queue());
        Membership held = enter(stores.get(2), queue());
        settle();
        assertTrue(first.silent().isEmpty());
        proxyOf(2).hold();
        Waiting.until("silence of rank 2", () -> first.silent().keySet().equals(Set.of(2)));
        assertTrue(first.silent().get(2).compareTo(Duration.ofMillis(300)) >= 0);
        // The other side hears nothing of rank 0, which keeps the store.
        Waiting.until("silence of rank 0", () -> held.silent().containsKey(0));
        proxyOf(2).release();
        Waiting.until(
                "end of the silence",
                () -> first.silent().isEmpty() && held.silent().isEmpty());
        assertTrue(told.isEmpty());
        assertEquals(List.of(), stores.get(0).gone());
    }

    @Test
    void silenceIsLossBeyondPatience() throws Exception {
        System.setProperty(HEARTBEAT, "0.1");
        System.setProperty(PATIENCE, "0.6");
        open(3);
        BlockingQueue<LostRank> told = queue();
        BlockingQueue<LostRank> toldSilent = queue();
        enter(stores.get(0), told);
        enter(stores.get(1), queue());
        enter(stores.get(2), toldSilent);
        settle();
        proxyOf(2).hold();
        LostRank lost = next(told);
        assertEquals(2, lost.rank());
        assertTrue(
                lost.reason().matches("it was silent for 0\\.[6-9]\\d* s|it was silent for \\d+(\\.\\d+)? s"),
                lost.reason());
        // Both sides of a cut link learn of it.
        assertEquals(0, next(toldSilent).rank());
        assertTrue(told.isEmpty());
    }

    @Test
    void wrongArgumentsAreRefused() throws Exception {
        open(1);
        TcpStore store = stores.get(0);
        assertThrows(IllegalArgumentException.class, () -> store.membership("", 0, lost -> {}));
        assertThrows(IllegalArgumentException.class, () -> store.membership("a/b", 0, lost -> {}));
        assertThrows(IllegalArgumentException.class, () -> store.membership("group", -1, lost -> {}));
        enter(store, queue());
        assertThrows(IllegalArgumentException.class, () -> enter(store, queue()));
        for (String wrong : List.of("-1", "x", "0.05", "NaN")) {
            System.setProperty(HEARTBEAT, wrong);
            IllegalArgumentException refused = assertThrows(
                    IllegalArgumentException.class, () -> Job.settings().open(job.rank(0, 1)));
            assertTrue(refused.getMessage().startsWith("NCCL4J_STORE_HEARTBEAT must be"), refused.getMessage());
        }
        System.setProperty(HEARTBEAT, "1");
        System.setProperty(PATIENCE, "2.9");
        assertThrows(IllegalArgumentException.class, () -> Job.settings().open(job.rank(0, 1)));
        System.setProperty(HEARTBEAT, "0");
        assertThrows(IllegalArgumentException.class, () -> Job.settings().open(job.rank(0, 1)));
    }
}
