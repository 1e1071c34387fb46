package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.ChildJvm.Running;
import io.github.nccl4j.tools.Main;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ranks on several hosts, which are network namespaces, at a store whose link to one of them is cut without a word. */
@Timeout(600)
@Tag("alone")
class CutLinksTest {
    private static final int PORT = 29500;
    private static final int PATIENCE_SECONDS = 3;

    /** After the patience, both sides must know of the loss within this time. */
    private static final long NOTICE_MILLIS = 1000;

    /** Before each test, not before all: the report of a class that is skipped as a whole names no tests. */
    @BeforeEach
    void requireHosts() {
        Hosts.require();
    }

    /** The sides of a link that is cut. */
    enum Cut {
        LINK,
        SENT,
        RECEIVED
    }

    /** A rank that meets the others in barriers, and continues with those that are left. */
    public static final class OneRank {
        private static final Duration LIMIT = Duration.ofSeconds(60);
        private static final int BARRIERS = 20;

        private OneRank() {}

        /** With an argument, it ends after some barriers; otherwise, when it has lost a rank, and met the others thereafter. */
        public static void main(String[] args) throws InterruptedException {
            RankInfo self = RankInfo.fromEnvironment();
            LinkedBlockingQueue<LostRank> losses = new LinkedBlockingQueue<>();
            List<Integer> left =
                    new ArrayList<>(IntStream.range(0, self.worldSize()).boxed().toList());
            try (TcpStore store = TcpStore.open(self);
                    Membership group =
                            store.membership("hosts", self.rank(), losses::add).orElseThrow()) {
                store.barrier("start", LIMIT);
                boolean isLost = false;
                for (int step = 0; left.size() < self.worldSize() || args.length > 0 ? step < BARRIERS : true; step++) {
                    try {
                        store.among("left " + left, left).barrier("step " + step, LIMIT);
                        Thread.sleep(50);
                        if (step == 2 && !isLost) {
                            print("begins");
                        }
                    } catch (RendezvousException failure) {
                        isLost = true;
                        print("fails: " + failure.getMessage());
                        if (failure.getMessage().contains("has lost its connection to the store")) {
                            return;
                        }
                        LostRank lost = losses.poll(LIMIT.toSeconds(), TimeUnit.SECONDS);
                        print("is told: " + lost);
                        left.remove((Object) lost.rank());
                        step = -1;
                    }
                }
                print("continues with " + left + ", silent " + group.silent().keySet());
            }
        }

        private static void print(String text) {
            System.out.println("at " + System.currentTimeMillis() + " " + text.replace('\n', ' '));
        }
    }

    private static ChildJvm jvm(Hosts hosts, int host) {
        return new ChildJvm()
                .by(hosts.on(host))
                .limit(Duration.ofMinutes(2))
                .environment("NCCL4J_STORE_SECRET", "a secret of more than sixteen bytes")
                .environment("NCCL4J_STORE_PATIENCE", "" + PATIENCE_SECONDS);
    }

    private static Running store(Hosts hosts) throws InterruptedException {
        Running store = jvm(hosts, 0).start(Main.class, "store", "--bind", Hosts.address(0), "--port", "" + PORT);
        store.awaitText("listening at");
        return store;
    }

    private static Running rank(Hosts hosts, int host, int rank, int size, boolean hasStore, String... arguments) {
        ChildJvm jvm = jvm(hosts, host)
                .environment("RANK", "" + rank)
                .environment("WORLD_SIZE", "" + size)
                .environment("MASTER_ADDR", Hosts.address(0))
                .environment("MASTER_PORT", "" + PORT);
        return (hasStore ? jvm.environment("NCCL4J_STORE_ADDRESS", Hosts.address(0) + ":" + PORT) : jvm)
                .start(OneRank.class, arguments);
    }

    private static long cut(Hosts hosts, Cut cut, int host) throws IOException {
        switch (cut) {
            case LINK -> hosts.unplug(host);
            case SENT -> hosts.dropWhatIsSent(host, 0);
            case RECEIVED -> hosts.dropWhatIsSent(0, host);
        }
        return System.currentTimeMillis();
    }

    /** The time after the cut of the first line that matches, in milliseconds. */
    private static long millis(Outcome outcome, long cut, String text) {
        Matcher line = Pattern.compile("(?m)^at (\\d+) " + text).matcher(outcome.output());
        assertTrue(line.find(), text + ": " + outcome.output());
        return Long.parseLong(line.group(1)) - cut;
    }

    private static void assertInTime(String what, long millis) {
        long limit = PATIENCE_SECONDS * 1000L + NOTICE_MILLIS;
        System.out.println(what + " after " + millis + " ms");
        assertTrue(millis <= limit, what + " after " + millis + " ms, expected at most " + limit);
    }

    /** A store on a host of its own. The rank that is cut off ends, and the others continue. */
    @ParameterizedTest
    @CsvSource({"2, 1, LINK", "3, 0, LINK", "2, 0, SENT", "2, 1, RECEIVED"})
    void bothSidesOfACutLinkNoticeIt(int size, int victim, Cut cut) throws Exception {
        try (Hosts hosts = Hosts.connected(size + 1)) {
            Running store = store(hosts);
            List<Running> ranks = new ArrayList<>();
            for (int rank = 0; rank < size; rank++) {
                ranks.add(rank(hosts, rank + 1, rank, size, true));
            }
            for (Running rank : ranks) {
                rank.awaitText("begins");
            }
            long moment = cut(hosts, cut, victim + 1);
            List<Integer> left = IntStream.range(0, size)
                    .filter(rank -> rank != victim)
                    .boxed()
                    .toList();
            for (int rank : left) {
                Outcome outcome = ranks.get(rank).await();
                assertEquals(0, outcome.exitCode(), outcome.output());
                String lost = "is told: rank " + victim + " \\(" + Pattern.quote(Hosts.address(victim + 1))
                        + ", process \\d+\\) is lost: it was silent for";
                assertInTime(cut + ", " + size + " ranks: rank " + rank + " is told", millis(outcome, moment, lost));
                millis(outcome, moment, Pattern.quote("continues with " + left));
            }
            Outcome other = ranks.get(victim).await();
            assertEquals(0, other.exitCode(), other.output());
            String fails = "fails: rank " + victim + " has lost its connection to the store at "
                    + Pattern.quote(Hosts.address(0) + ":" + PORT) + ": .*it was silent for";
            assertInTime(
                    cut + ", " + size + " ranks: rank " + victim + ", which is cut off, fails",
                    millis(other, moment, fails));
            // It does not continue alone.
            assertFalse(other.output().contains("continues"), other.output());
            ChildProcesses.kill(store.process());
        }
    }

    @Test
    void delaysAndLossesAreNoLossOfARank() throws Exception {
        try (Hosts hosts = Hosts.connected(3)) {
            for (int host = 0; host < 3; host++) {
                hosts.disturb(host, "delay 100ms 50ms loss 5%");
            }
            Running store = store(hosts);
            List<Running> ranks = List.of(rank(hosts, 1, 0, 2, true, "end"), rank(hosts, 2, 1, 2, true, "end"));
            for (Running rank : ranks) {
                Outcome outcome = rank.await();
                assertEquals(0, outcome.exitCode(), outcome.output());
                assertTrue(outcome.output().contains("continues with [0, 1]"), outcome.output());
            }
            ChildProcesses.kill(store.process());
        }
    }
}
