package io.github.nccl4j.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.launch.JobStatus;
import io.github.nccl4j.launch.RankStatus;
import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.StatusEntry;
import io.github.nccl4j.launch.StoreObserver;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.status.StatusCommand;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import picocli.CommandLine;

/** Looks of observers, and of {@code nccl4j status}, at jobs on ZooKeeper. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ZooKeeperObserverTest {
    private static final Duration LIMIT = Ensemble.LIMIT;
    private static final byte[] SECRET = "a secret of more than sixteen bytes".getBytes(StandardCharsets.UTF_8);

    @AutoClose
    private static Ensemble ensemble;

    private final List<AutoCloseable> open = new ArrayList<>();

    @BeforeAll
    static void start() throws Exception {
        ensemble = new Ensemble();
    }

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable one : open) {
            one.close();
        }
    }

    private static String address() {
        return "zookeeper://" + ensemble.addresses();
    }

    private StoreObserver observe() {
        StoreObserver observer = StoreObserver.connect(address(), LIMIT);
        open.add(observer);
        return observer;
    }

    private ZooKeeperStore rank(ZooKeeperStore.Builder builder, String job, int rank, int size) {
        ZooKeeperStore store = builder.open(Ensemble.rank(job, rank, size));
        open.add(store);
        return store;
    }

    private static List<RankStatus> onlyJob(StoreObserver observer, Duration timeout) {
        List<JobStatus> jobs = observer.look(timeout);
        assertEquals(1, jobs.size(), jobs::toString);
        return jobs.get(0).ranks();
    }

    private static List<State> states(StoreObserver observer, Duration timeout) {
        return onlyJob(observer, timeout).stream().map(RankStatus::state).toList();
    }

    @Test
    void everyRankAnswersWithItsTexts() throws Exception {
        String job = ensemble.job();
        ZooKeeperStore zero = rank(ensemble.builder(), job, 0, 2);
        ZooKeeperStore one = rank(ensemble.builder(), job, 1, 2);
        StatusEntry entry = one.status("epoch", () -> "3 of 90").orElseThrow();
        zero.scope("a").status("b", () -> {
            throw new IllegalStateException("no state");
        });
        StoreObserver observer = observe();
        assertEquals(address(), observer.address());
        List<JobStatus> jobs = observer.look(LIMIT);
        assertEquals(job, jobs.get(0).job());
        assertEquals(0, jobs.get(0).restart());
        List<RankStatus> ranks = jobs.get(0).ranks();
        assertEquals(
                List.of(State.ANSWERED, State.ANSWERED),
                ranks.stream().map(RankStatus::state).toList());
        assertEquals(
                Map.of("a/b", "java.lang.IllegalStateException: no state"),
                ranks.get(0).texts());
        assertEquals(Map.of("epoch", "3 of 90"), ranks.get(1).texts());
        assertTrue(
                ranks.get(1)
                        .process()
                        .endsWith(", process " + ProcessHandle.current().pid()),
                ranks::toString);
        assertEquals(
                "a topic must have one text at most: epoch",
                assertThrows(IllegalArgumentException.class, () -> one.status("epoch", () -> "again"))
                        .getMessage());
        entry.close();
        assertEquals(Map.of(), onlyJob(observer, LIMIT).get(1).texts());
        // A rank deletes its old answer after it has written the new one.
        String answers = zero.job().folder("status");
        Waiting.until("two answers", () -> zero.session().children(answers).size() == 2);
    }

    @Test
    void longTextsAreOmitted() {
        ZooKeeperStore store = rank(ensemble.builder(), ensemble.job(), 0, 1);
        store.status("long", () -> "x".repeat(16 << 10));
        store.status("short", () -> "ü");
        RankStatus status = onlyJob(observe(), LIMIT).get(0);
        assertEquals(Map.of("short", "ü"), status.texts());
        assertEquals(1, status.omitted());
    }

    /** The job has a rank of each state but that of silence, which the ensemble does not report. */
    @Test
    void ranksWithoutAnAnswerAreNotWaitedForIfTheyAreGone() throws Exception {
        String job = ensemble.job();
        rank(ensemble.builder(), job, 0, 5);
        ZooKeeperStore lost = rank(ensemble.builder(), job, 1, 5);
        ZooKeeperStore left = rank(ensemble.builder(), job, 2, 5);
        ZooKeeperStore late = rank(ensemble.builder(), job, 3, 5);
        ensemble.endSession(lost);
        left.close();
        StoreObserver observer = observe();
        long begin = System.nanoTime();
        assertEquals(
                List.of(State.ANSWERED, State.LOST, State.LEFT, State.ANSWERED, State.MISSING),
                states(observer, LIMIT));
        assertTrue(System.nanoTime() - begin < LIMIT.toNanos());
        CountDownLatch end = new CountDownLatch(1);
        late.session().inBackground(() -> {
            try {
                end.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        try {
            assertEquals(
                    List.of(State.ANSWERED, State.LOST, State.LEFT, State.NO_ANSWER, State.MISSING),
                    states(observer, Duration.ofSeconds(1)));
        } finally {
            end.countDown();
        }
        // The next process of the lost rank.
        rank(ensemble.builder(), job, 1, 5);
        assertEquals(State.ANSWERED, states(observer, LIMIT).get(1));
    }

    @Test
    void jobsOfAnotherSecretAreNotSeen() {
        rank(ensemble.builder().secret(SECRET), ensemble.job(), 0, 1);
        StoreObserver stranger = observe();
        RendezvousException refused = assertThrows(RendezvousException.class, () -> stranger.look(LIMIT));
        assertTrue(refused.getMessage().contains("the secret of the ranks"), refused.getMessage());
        rank(ensemble.builder(), ensemble.job(), 0, 1);
        assertEquals(1, stranger.look(LIMIT).size());
        // A job without the secret may be made up by anyone.
        try (StoreObserver trusted = StoreObserver.connect(address(), SECRET, LIMIT)) {
            assertEquals(1, trusted.look(LIMIT).size());
        }
    }

    @Test
    void wrongArgumentsAreRefused() {
        StoreObserver observer = observe();
        assertEquals(List.of(), observer.look(LIMIT));
        assertEquals(
                "timeout must be <= 60 s: 61 s",
                assertThrows(IllegalArgumentException.class, () -> observer.look(Duration.ofSeconds(61)))
                        .getMessage());
        assertThrows(IllegalArgumentException.class, () -> observer.look(Duration.ofSeconds(-1)));
        assertEquals(
                "the address must have the servers after zookeeper://, such as zookeeper://zk1:2181,zk2:2181: zookeeper://",
                assertThrows(IllegalArgumentException.class, () -> StoreObserver.connect("zookeeper://", LIMIT))
                        .getMessage());
        assertThrows(
                RendezvousException.class,
                () -> StoreObserver.connect("zookeeper://127.0.0.1:1", Duration.ofMillis(500)));
        observer.close();
        observer.close();
        assertThrows(RendezvousException.class, () -> observer.look(LIMIT));
    }

    /* The command. */

    private record Outcome(int code, String out, String err) {}

    private static Outcome status(String... arguments) {
        return status(new StringWriter(), arguments);
    }

    private static Outcome status(StringWriter out, String... arguments) {
        StringWriter err = new StringWriter();
        CommandLine command = new CommandLine(new StatusCommand()).setOut(new PrintWriter(out));
        command.setErr(new PrintWriter(err));
        List<String> all = new ArrayList<>(List.of("--store", address()));
        all.addAll(List.of(arguments));
        return new Outcome(command.execute(all.toArray(String[]::new)), out.toString(), err.toString());
    }

    /** Looks until the report has the wanted property. */
    private static Outcome await(Predicate<Outcome> wanted, String... arguments) throws InterruptedException {
        return Waiting.value("the wanted report", () -> status(arguments), wanted);
    }

    @Test
    void commandNamesTheStoppedRank() throws Exception {
        int size = 3;
        List<Process> ranks = new ArrayList<>();
        try {
            for (int rank = 0; rank < size; rank++) {
                ranks.add(ChildProcesses.start(new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java")
                                        .toString(),
                                "-Dnccl4j.engine=host",
                                "-XX:TieredStopAtLevel=1",
                                "-cp",
                                System.getProperty("java.class.path"),
                                WaitingRank.class.getName(),
                                ensemble.addresses(),
                                "" + rank,
                                "" + size)
                        .redirectErrorStream(true)));
            }
            Outcome outcome = await(one -> one.out().startsWith("Rank 2 did not answer within 1.0 s [")
                    && one.out()
                                    .lines()
                                    .filter(line -> line.contains("(operation 2)"))
                                    .count()
                            == 2);
            System.out.println(outcome.out());
            assertEquals(1, outcome.code());
            List<String> lines = outcome.out().lines().toList();
            assertEquals("2 of 3 ranks of job 'waiting' answered.", lines.get(1));
            assertTrue(lines.get(4).matches(" +2 .* " + ranks.get(2).pid() + " .* no answer"), outcome::toString);
            JsonObject look = JsonParser.parseString(status("--json").out()).getAsJsonObject();
            assertEquals(address(), look.get("store").getAsString());
            JsonObject job = look.getAsJsonArray("jobs").get(0).getAsJsonObject();
            assertEquals(2, job.get("answered").getAsInt());
            assertEquals(
                    "no_answer",
                    job.getAsJsonArray("ranks")
                            .get(2)
                            .getAsJsonObject()
                            .get("state")
                            .getAsString());
            StringWriter out = new StringWriter();
            Future<Outcome> watched = ensemble.submit(() -> status(out, "--watch", "1"));
            // The session of the rank ends.
            String lost = ", process " + ranks.get(2).pid() + ") is lost: its connection to the store has ended [";
            Waiting.until(lost, () -> out.toString().contains(lost));
            for (int rank = 0; rank < size - 1; rank++) {
                ranks.get(rank).getOutputStream().close();
            }
            assertEquals("nccl4j: the job has ended\n", Ensemble.result(watched).err());
            for (int rank = 0; rank < size - 1; rank++) {
                String output = new String(ranks.get(rank).getInputStream().readAllBytes(), StandardCharsets.UTF_8);
                assertEquals(0, ranks.get(rank).waitFor(), output);
                assertTrue(output.contains(", process " + ranks.get(2).pid() + ") is lost"), output);
            }
        } finally {
            ChildProcesses.kill(ranks);
        }
    }

    @Test
    void commandReportsThatThereIsNoJob() {
        Outcome outcome = status();
        assertEquals(2, outcome.code());
        assertEquals("nccl4j: the store at " + address() + " has no job\n", outcome.err());
    }
}
