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
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ranks on several hosts, which are network namespaces, at a store whose link to one of them is cut without a word. */
@Timeout(600)
@Tag("alone")
class CutLinksTest {
    private static final int PORT = 29500;
    private static final int PATIENCE_SECONDS = 3;

    /** With every twentieth packet lost, one may be lost so often in a row that its repetition takes longer than the other patience. */
    private static final int PATIENCE_WITH_LOSSES_SECONDS = 10;

    private static final Disturbance DISTURBANCE = new Disturbance(50, 20, 1);

    @TempDir
    static Path folder;

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

    /** A rank that exchanges the number of the step with the others, and continues with those that are left. */
    public static final class OneRank {
        private static final Duration LIMIT = Duration.ofSeconds(60);
        private static final int STEPS = 50;

        private OneRank() {}

        /** With an argument, it ends after some steps; otherwise, when it has lost a rank, and met the others thereafter. */
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
                int step = 0;
                while (step < STEPS || left.size() == self.worldSize() && args.length == 0) {
                    try {
                        exchange(store, left, step);
                        step++;
                        Thread.sleep(50);
                        if (step == 3 && !isLost) {
                            print("begins");
                        }
                    } catch (RendezvousException failure) {
                        isLost = true;
                        print("fails: " + failure.getMessage());
                        if (failure.getMessage().contains("has lost its connection to the store")) {
                            LostRank lost = losses.poll(LIMIT.toSeconds(), TimeUnit.SECONDS);
                            print("is told: " + lost);
                            return;
                        }
                        LostRank lost = losses.poll(LIMIT.toSeconds(), TimeUnit.SECONDS);
                        print("is told: " + lost);
                        left.remove((Object) lost.rank());
                        step = 0;
                    }
                }
                store.among("end " + left, left).barrier("end", LIMIT);
                print("continues with " + left + ", silent " + group.silent().keySet() + ", lost " + losses);
            }
        }

        private static void exchange(TcpStore store, List<Integer> left, int step) {
            List<byte[]> values = store.among("left " + left, left)
                    .gather("step " + step, new byte[] {(byte) store.rank(), (byte) step}, LIMIT);
            for (int i = 0; i < left.size(); i++) {
                if (values.get(i)[0] != left.get(i) || values.get(i)[1] != (byte) step) {
                    throw new IllegalStateException("step " + step + ": the value of rank " + left.get(i) + " is "
                            + Arrays.toString(values.get(i)));
                }
            }
        }

        private static void print(String text) {
            System.out.println("at " + System.currentTimeMillis() + " " + text.replace('\n', ' '));
        }
    }

    static ChildJvm jvm(Hosts hosts, int host) {
        return new ChildJvm()
                .by(hosts.on(host))
                .limit(Duration.ofMinutes(2))
                .environment("NCCL4J_STORE_SECRET", "a secret of more than sixteen bytes")
                .environment("NCCL4J_STORE_PATIENCE", "" + PATIENCE_SECONDS);
    }

    static Running store(Hosts hosts) throws InterruptedException {
        return store(hosts, PATIENCE_SECONDS);
    }

    private static Running store(Hosts hosts, int patienceSeconds) throws InterruptedException {
        Running store = jvm(hosts, 0)
                .environment("NCCL4J_STORE_PATIENCE", "" + patienceSeconds)
                .start(Main.class, "store", "--bind", Hosts.address(0), "--port", "" + PORT);
        store.awaitText("listening at");
        return store;
    }

    /** The JVM of a rank; the store is on host 0. */
    static ChildJvm rank(Hosts hosts, int host, int rank, int size) {
        return jvm(hosts, host)
                .environment("RANK", "" + rank)
                .environment("WORLD_SIZE", "" + size)
                .environment("NCCL4J_STORE_ADDRESS", Hosts.address(0) + ":" + PORT);
    }

    static long cut(Hosts hosts, Cut cut, int host) throws IOException {
        switch (cut) {
            case LINK -> hosts.unplug(host);
            case SENT -> hosts.dropWhatIsSent(host, 0);
            case RECEIVED -> hosts.dropWhatIsSent(0, host);
        }
        return System.currentTimeMillis();
    }

    /** The time after the cut of the first line that matches, in milliseconds. */
    static long millis(Outcome outcome, long cut, String text) {
        Matcher line = Pattern.compile("(?m)^at (\\d+) " + text).matcher(outcome.output());
        assertTrue(line.find(), text + ": " + outcome.output());
        return Long.parseLong(line.group(1)) - cut;
    }

    /** At most the patience and the time of a notice. */
    static void assertInTime(String what, long millis) {
        long limit = PATIENCE_SECONDS * 1000L + NOTICE_MILLIS;
        System.out.println(what + " after " + millis + " ms");
        assertTrue(millis <= limit, what + " after " + millis + " ms, expected at most " + limit);
    }

    private static void assertBothSidesNotice(String what, List<Running> ranks, int victim, int host, long moment) {
        List<Integer> left = IntStream.range(0, ranks.size())
                .filter(rank -> rank != victim)
                .boxed()
                .toList();
        String failure = what + ", " + ranks.size() + " ranks: rank ";
        for (int rank : left) {
            Outcome outcome = ranks.get(rank).await();
            assertEquals(0, outcome.exitCode(), outcome.output());
            String lost = "is told: rank " + victim + " \\(" + Pattern.quote(Hosts.address(host))
                    + ", process \\d+\\) is lost: it was silent for";
            assertInTime(failure + rank + " is told", millis(outcome, moment, lost));
            millis(outcome, moment, Pattern.quote("continues with " + left));
        }
        Outcome other = ranks.get(victim).await();
        assertEquals(0, other.exitCode(), other.output());
        String store = Pattern.quote(Hosts.address(0) + ":" + PORT);
        assertInTime(
                failure + victim + ", which is cut off, fails",
                millis(
                        other,
                        moment,
                        "fails: rank " + victim + " has lost its connection to the store at " + store
                                + ": .*it was silent for"));
        assertInTime(
                failure + victim + " is told that the others count it as lost",
                millis(
                        other,
                        moment,
                        "is told: rank " + victim + " \\(this process\\) is lost: its connection to the store at "
                                + store
                                + " has ended \\(.*it was silent for .*\\), and the other ranks count it as lost"));
        // It does not continue alone.
        assertFalse(other.output().contains("continues"), other.output());
    }

    /** A store on a host of its own. The rank that is cut off ends, and the others continue. */
    @ParameterizedTest
    @CsvSource({"2, 1, LINK", "3, 0, LINK", "2, 0, SENT", "2, 1, RECEIVED"})
    void bothSidesOfACutLinkNoticeIt(int size, int victim, Cut cut) throws Exception {
        try (Hosts hosts = Hosts.connected(size + 1)) {
            Running store = store(hosts);
            List<Running> ranks = new ArrayList<>();
            for (int rank = 0; rank < size; rank++) {
                ranks.add(rank(hosts, rank + 1, rank, size).start(OneRank.class));
            }
            for (Running rank : ranks) {
                rank.awaitText("begins");
            }
            long moment = cut(hosts, cut, victim + 1);
            assertBothSidesNotice(cut.toString(), ranks, victim, victim + 1, moment);
            ChildProcesses.kill(store.process());
        }
    }

    /** Starts a store on host 0, and a rank on each host. */
    private static List<Running> ranks(Hosts hosts, int size, int patienceSeconds, String... arguments)
            throws InterruptedException {
        List<Running> ranks = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            ranks.add(rank(hosts, rank, rank, size)
                    .environment("NCCL4J_STORE_PATIENCE", "" + patienceSeconds)
                    .start(OneRank.class, arguments));
        }
        return ranks;
    }

    @ParameterizedTest
    @CsvSource({"2, 50, 20, 5", "3, 100, 50, 5"})
    void delaysAndLossesAreNoLossOfARank(int size, int delay, int jitter, int loss) throws Exception {
        try (Hosts hosts = Hosts.disturbed(size, new Disturbance(delay, jitter, loss), folder)) {
            Running store = store(hosts, PATIENCE_WITH_LOSSES_SECONDS);
            List<Integer> all = IntStream.range(0, size).boxed().toList();
            for (Running rank : ranks(hosts, size, PATIENCE_WITH_LOSSES_SECONDS, "end")) {
                Outcome outcome = rank.await();
                assertEquals(0, outcome.exitCode(), outcome.output());
                assertTrue(
                        outcome.output().contains("continues with " + all + ", silent [], lost []"), outcome.output());
                assertFalse(outcome.output().contains("has been silent"), outcome.output());
            }
            long lost = hosts.unplugAll();
            System.out.println(size + " hosts: " + lost + " frames were lost");
            assertTrue(lost != 0, "no frame was lost");
            ChildProcesses.kill(store.process());
        }
    }

    /** The store is on the host of a rank. */
    @ParameterizedTest
    @CsvSource({"2, 1", "3, 2"})
    void bothSidesNoticeThatADisturbedLinkIsCut(int size, int victim) throws Exception {
        try (Hosts hosts = Hosts.disturbed(size, DISTURBANCE, folder)) {
            Running store = store(hosts);
            List<Running> ranks = ranks(hosts, size, PATIENCE_SECONDS);
            for (Running rank : ranks) {
                rank.awaitText("begins");
            }
            long moment = cut(hosts, Cut.LINK, victim);
            assertBothSidesNotice(DISTURBANCE + ", then a cut", ranks, victim, victim, moment);
            ChildProcesses.kill(store.process());
        }
    }
}
