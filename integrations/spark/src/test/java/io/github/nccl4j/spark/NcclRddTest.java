package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Communicator.State;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.testing.Waiting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two tasks in this JVM, on the host engine. */
// In a thread of its own: an action of Spark may not end when its thread is interrupted. Shorter than LONG.
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NcclRddTest {
    /** Longer than any test may take: what ends earlier was ended. */
    private static final Duration LONG = Duration.ofMinutes(10);

    private static JavaSparkContext spark;

    /** What tasks leave here, since they are in this JVM. */
    private static final Map<Integer, Communicator> COMMUNICATORS = new ConcurrentHashMap<>();

    private static final List<String> SEEN = Collections.synchronizedList(new ArrayList<>());
    private static final Semaphore RELEASE = new Semaphore(0);
    private static volatile CountDownLatch inCommunicator;

    @BeforeAll
    static void start() {
        spark = new JavaSparkContext(new SparkConf()
                .setAppName("NcclRddTest")
                .setMaster("local[2]")
                .set("spark.ui.enabled", "false")
                .set("spark.barrier.sync.timeout", "60"));
    }

    @AfterAll
    static void stop() {
        spark.close();
    }

    @AfterEach
    void leavesNoThreadThatWatches() throws InterruptedException {
        COMMUNICATORS.clear();
        SEEN.clear();
        Waiting.until("end of the watching threads", () -> Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().endsWith("watches its communicator")));
    }

    private static JavaRDD<Integer> twoPartitions() {
        return spark.parallelize(List.of(1, 2, 3, 4), 2);
    }

    @Test
    void theSampleFitsALine() {
        assertEquals(4, AveragedGradient.fit(spark, 2).length);
    }

    @Test
    void tasksAreTheRanksOfOneCommunicator() {
        List<String> ranks = NcclRdd.of(twoPartitions())
                .mapPartitions((communicator, rows) -> {
                    int sum = 0;
                    while (rows.hasNext()) {
                        sum += rows.next();
                    }
                    COMMUNICATORS.put(communicator.rank(), communicator);
                    return List.of(TaskContext.getPartitionId() + " is " + communicator.rank() + " of "
                                    + communicator.size() + ": " + RankSum.of(communicator, sum))
                            .iterator();
                })
                .collect();
        assertEquals(List.of("0 is 0 of 2: 10", "1 is 1 of 2: 10"), ranks);
        assertNotSame(COMMUNICATORS.get(0), COMMUNICATORS.get(1));
        assertEquals(State.CLOSED, COMMUNICATORS.get(0).state());
        assertEquals(State.CLOSED, COMMUNICATORS.get(1).state());
    }

    /** Spark sleeps for a second in each exchange; without an interrupt, this call would end with the limit. */
    @Test
    void anExchangeIsWoken() {
        List<String> woken = NcclRdd.of(twoPartitions())
                .mapPartitions((communicator, rows) -> List.of(TaskWatch.awaitExchange(
                                TaskContext.get(), "an interrupt", Duration.ofSeconds(100), () -> {
                                    assertThrows(InterruptedException.class, () -> Thread.sleep(LONG.toMillis()));
                                    return "woken";
                                }))
                        .iterator())
                .collect();
        assertEquals(List.of("woken", "woken"), woken);
    }

    @Test
    void resultsMayBeComputedWhenTheyAreConsumed() {
        List<Integer> sums = NcclRdd.of(twoPartitions())
                .mapPartitions(NcclRddTest::sumsOfRows)
                .collect();
        assertEquals(List.of(1 + 3, 2 + 4, 1 + 3, 2 + 4), sums);
    }

    private static Iterator<Integer> sumsOfRows(Communicator communicator, Iterator<Integer> rows) {
        return new Iterator<>() {
            @Override
            public boolean hasNext() {
                return rows.hasNext();
            }

            @Override
            public Integer next() {
                return RankSum.of(communicator, rows.next());
            }
        };
    }

    @Test
    void settingsReachTheCommunicator() {
        List<Long> deadlines = NcclRdd.of(twoPartitions())
                .deadline(Duration.ofSeconds(31))
                .configure(builder ->
                        builder.onFailure((communicator, failure) -> SEEN.add(communicator + ": " + failure)))
                .mapPartitions((communicator, rows) ->
                        List.of(communicator.deadline().toSeconds()).iterator())
                .collect();
        assertEquals(List.of(31L, 31L), deadlines);
        assertEquals(
                "deadline must be > 0: -20 s",
                assertThrows(IllegalArgumentException.class, () -> NcclRdd.of(twoPartitions())
                                .deadline(Duration.ofSeconds(-20)))
                        .getMessage());
        assertThrows(IllegalArgumentException.class, () -> NcclRdd.of(twoPartitions())
                .deadline(Duration.ZERO));
    }

    @Test
    void aTaskThatFailsEndsTheOthersThatWaitForIt() throws Exception {
        inCommunicator = new CountDownLatch(2);
        JavaRDD<Integer> results = NcclRdd.of(twoPartitions()).deadline(LONG).mapPartitions((communicator, rows) -> {
            COMMUNICATORS.put(communicator.rank(), communicator);
            inCommunicator.countDown();
            if (communicator.rank() == 1) {
                inCommunicator.await();
                throw new IllegalArgumentException("no good row");
            }
            return List.of(RankSum.of(communicator, 1)).iterator();
        });
        Exception failure = assertThrows(SparkException.class, results::collect);
        assertTrue(failure.getMessage().contains("no good row"), failure.getMessage());
        assertEquals(Set.of(0, 1), COMMUNICATORS.keySet());
        Waiting.until("abort of all communicators", () -> COMMUNICATORS.values().stream()
                .allMatch(one -> one.state() == State.ABORTED));
        // The executor can be used again.
        tasksAreTheRanksOfOneCommunicator();
    }

    @Test
    void aJobThatIsCancelledEndsItsTasksThatWaitInNativeCode() throws Exception {
        inCommunicator = new CountDownLatch(2);
        JavaFutureAction<List<Integer>> job = NcclRdd.of(twoPartitions())
                .deadline(LONG)
                .mapPartitions((communicator, rows) -> {
                    COMMUNICATORS.put(communicator.rank(), communicator);
                    inCommunicator.countDown();
                    if (communicator.rank() == 1) {
                        awaitState(communicator, State.ABORTED);
                    }
                    return List.of(RankSum.of(communicator, 1)).iterator();
                })
                .collectAsync();
        assertTrue(inCommunicator.await(50, TimeUnit.SECONDS));
        job.cancel(true);
        assertThrows(Exception.class, job::get);
        Waiting.until("abort of all communicators", () -> COMMUNICATORS.values().stream()
                .allMatch(one -> one.state() == State.ABORTED));
    }

    private static void awaitState(Communicator communicator, State state) throws InterruptedException {
        Waiting.until("state " + state, () -> communicator.state() == state);
    }

    @Test
    void aJobThatIsCancelledEndsATaskThatWaitsForTheOthers() throws Exception {
        inCommunicator = new CountDownLatch(2);
        JavaFutureAction<List<Integer>> job = NcclRdd.of(twoPartitions())
                .deadline(LONG)
                .configure(builder -> {
                    SEEN.add("came");
                    inCommunicator.countDown();
                    TaskContext task = TaskContext.get();
                    if (task.partitionId() == 1) {
                        Waiting.until("the interrupt", task::isInterrupted);
                        throw new IllegalStateException("is to end");
                    }
                    task.addTaskFailureListener(NcclRddTest::noteFailure);
                })
                .mapPartitions((communicator, rows) -> List.of(1).iterator())
                .collectAsync();
        assertTrue(inCommunicator.await(50, TimeUnit.SECONDS));
        job.cancel(true);
        assertThrows(Exception.class, job::get);
        Waiting.until("the failure of the task", () -> SEEN.contains("org.apache.spark.TaskKilledException"));
    }

    private static void noteFailure(TaskContext task, Throwable failure) {
        SEEN.add(failure.getClass().getName());
    }

    @Test
    void aStageBeforeAShuffleIsTriedAgainWithANewCommunicator() {
        List<Integer> sums = NcclRdd.of(twoPartitions())
                .deadline(LONG)
                .mapPartitions((communicator, rows) -> {
                    if (TaskContext.get().stageAttemptNumber() > 0) {
                        Rendezvous tasks = new TaskRendezvous(BarrierTaskContext.get());
                        SEEN.add(assertThrows(
                                        RendezvousException.class, () -> tasks.barrier("call " + tasks.rank(), LONG))
                                .getMessage()
                                .replaceAll("stage \\d+", "stage S"));
                    } else if (communicator.rank() == 1) {
                        throw new IllegalArgumentException("the first time");
                    }
                    return List.of(RankSum.of(communicator, 1)).iterator();
                })
                .repartition(1)
                .collect();
        assertEquals(List.of(2, 2), sums);
        // A task that remains of the first attempt would differ.
        assertEquals(
                Set.of(
                        "all tasks must make the same call: rank 1 is at 'call 1' of stage S.1, this rank at 'call 0' of"
                                + " stage S.1",
                        "all tasks must make the same call: rank 0 is at 'call 0' of stage S.1, this rank at 'call 1' of"
                                + " stage S.1"),
                Set.copyOf(SEEN));
    }

    @Test
    void aTaskThatNeverComesIsMissedAtTheDeadline() throws Exception {
        JavaRDD<Integer> results = NcclRdd.of(twoPartitions())
                .deadline(Duration.ofSeconds(4))
                .configure(builder -> {
                    if (TaskContext.getPartitionId() == 1) {
                        TaskContext task = TaskContext.get();
                        Waiting.until("the interrupt", task::isInterrupted);
                    }
                })
                .mapPartitions((communicator, rows) -> List.of(1).iterator());
        Exception failure = assertThrows(SparkException.class, results::collect);
        assertTrue(failure.getMessage().contains("RendezvousTimeoutException"), failure.getMessage());
        assertTrue(failure.getMessage().contains("waited 4 s for the 2 tasks at 'card'"), failure.getMessage());
    }

    @Test
    void theTasksOfAStageAreARendezvous() {
        List<String> results = NcclRdd.of(twoPartitions())
                .mapPartitions((communicator, rows) -> {
                    Rendezvous tasks = new TaskRendezvous(BarrierTaskContext.get());
                    List<byte[]> ranks = tasks.gather("rank", new byte[] {(byte) (10 + tasks.rank())}, LONG);
                    byte[] root = tasks.scope("a").broadcast("value", 1, () -> new byte[] {7}, LONG);
                    tasks.barrier("end", LONG);
                    return List.of(tasks.rank() + " of " + tasks.size() + ": " + ranks.get(0)[0] + " " + ranks.get(1)[0]
                                    + " " + root[0])
                            .iterator();
                })
                .collect();
        assertEquals(List.of("0 of 2: 10 11 7", "1 of 2: 10 11 7"), results);
    }

    @Test
    void callsOfCommunicatorsCanBeCompared() {
        System.setProperty("nccl4j.check", "true");
        try {
            JavaRDD<Integer> results = NcclRdd.of(twoPartitions()).mapPartitions((communicator, rows) -> {
                RankSum.of(communicator, 1);
                return List.of(RankSum.of(communicator, communicator.rank() == 0 ? ReduceOp.SUM : ReduceOp.MAX, 1))
                        .iterator();
            });
            Exception failure = assertThrows(SparkException.class, results::collect);
            assertTrue(failure.getMessage().contains("CallMismatchException"), failure.getMessage());
        } finally {
            System.clearProperty("nccl4j.check");
        }
    }

    @Test
    void tasksThatMakeDifferentCallsAreNamed() {
        List<String> failures = NcclRdd.of(twoPartitions())
                .mapPartitions((communicator, rows) -> {
                    Rendezvous tasks = new TaskRendezvous(BarrierTaskContext.get());
                    try {
                        tasks.barrier("call " + tasks.rank(), LONG);
                        return List.of("none").iterator();
                    } catch (RendezvousException e) {
                        return List.of(e.getMessage().replaceAll("stage \\d+", "stage S"))
                                .iterator();
                    }
                })
                .collect();
        assertEquals(
                List.of(
                        "all tasks must make the same call: rank 1 is at 'call 1' of stage S.0, this rank at 'call 0' of"
                                + " stage S.0",
                        "all tasks must make the same call: rank 0 is at 'call 0' of stage S.0, this rank at 'call 1' of"
                                + " stage S.0"),
                failures);
    }

    @Test
    void anExchangeThatSparkRefusesIsAFailureOfTheRendezvous() {
        List<String> results = NcclRdd.of(twoPartitions())
                .mapPartitions((communicator, rows) -> {
                    BarrierTaskContext task = BarrierTaskContext.get();
                    Rendezvous tasks = new TaskRendezvous(task);
                    if (tasks.rank() == 1) {
                        return List.of(assertThrows(SparkException.class, task::barrier)
                                        .getClass()
                                        .getSimpleName())
                                .iterator();
                    }
                    RendezvousException failure =
                            assertThrows(RendezvousException.class, () -> tasks.gather("a", new byte[0], LONG));
                    String cause = failure.getCause().getMessage();
                    return List.of(failure.getMessage().replace(cause, "cause")).iterator();
                })
                .collect();
        assertEquals(List.of("rank 0 can't wait for the 2 tasks at 'a': cause", "SparkException"), results);
    }

    @Test
    void aTaskRefusesANegativeTimeoutAndKeepsItsInterrupt() {
        List<String> results = NcclRdd.of(twoPartitions())
                .mapPartitions((communicator, rows) -> {
                    Rendezvous tasks = new TaskRendezvous(BarrierTaskContext.get());
                    String negative = assertThrows(
                                    IllegalArgumentException.class,
                                    () -> tasks.gather("a", new byte[0], Duration.ofMillis(-1)))
                            .getMessage();
                    Thread.currentThread().interrupt();
                    String interrupted = assertThrows(
                                    RendezvousException.class, () -> tasks.gather("b", new byte[0], LONG))
                            .getMessage();
                    return List.of(negative, interrupted, "" + Thread.interrupted())
                            .iterator();
                })
                .collect();
        String negative = "timeout must be >= 0: -0.001 s";
        assertEquals(
                List.of(
                        negative,
                        "rank 0 was interrupted while it waited for the 2 tasks at 'b'",
                        "true",
                        negative,
                        "rank 1 was interrupted while it waited for the 2 tasks at 'b'",
                        "true"),
                results);
    }

    @Test
    void waitingEndsAtItsLimitAndALateResultIsDisposedOf() throws InterruptedException {
        List<String> failures = spark.parallelize(List.of(1), 1)
                .map(row -> {
                    try {
                        return TaskWatch.await(
                                TaskContext.get(),
                                "a call",
                                Duration.ofMillis(200),
                                () -> {
                                    RELEASE.acquireUninterruptibly();
                                    return "late";
                                },
                                SEEN::add);
                    } catch (RendezvousTimeoutException e) {
                        return e.getMessage().replaceFirst("stage \\d+", "stage S");
                    }
                })
                .collect();
        assertEquals(List.of("task 0 of stage S.0 waited 0.2 s for a call"), failures);
        RELEASE.release();
        Waiting.until("the late result", () -> SEEN.contains("late"));
    }
}
