package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Two executors, each a process of its own, on the host engine. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NcclRddClusterTest {
    /** Steps that the second attempt of a stage adds, so that the line is right. */
    private static final int MORE_STEPS = 200;

    private static JavaSparkContext spark;

    @BeforeAll
    static void start() throws Exception {
        Path home = Path.of(System.getProperty("nccl4j.test.spark.home"));
        // Workers look for Spark's jars here; they come with the class path.
        Files.createDirectories(home.resolve("jars"));
        // An executor that is killed leaves the native libraries that it has extracted.
        Path temporary = Files.createDirectories(home.resolve("tmp"));
        spark = new JavaSparkContext(new SparkConf()
                .setAppName("NcclRddClusterTest")
                .setMaster("local-cluster[2,1,512]")
                .set("spark.ui.enabled", "false")
                .set("spark.executor.memory", "512m")
                .set("spark.executor.extraClassPath", System.getProperty("java.class.path"))
                .set(
                        "spark.executor.extraJavaOptions",
                        "-Dnccl4j.engine=host -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \"-Djava.io.tmpdir=" + temporary
                                + "\"")
                // The first job waits for both executors, and a barrier stage looks for them once a second.
                .set("spark.scheduler.minRegisteredResourcesRatio", "1.0")
                .set("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "1s"));
    }

    @AfterAll
    static void stop() {
        spark.close();
    }

    @Test
    void theSampleFitsALine() {
        assertEquals(4, AveragedGradient.fit(spark, 2).length);
    }

    @Test
    void ranksAreInProcessesOfTheirOwn() {
        List<Long> processes = NcclRdd.of(spark.parallelize(List.of(1, 2), 2))
                .mapPartitions((communicator, rows) -> {
                    assertEquals(3, RankSum.of(communicator, rows.next()));
                    return List.of(ProcessHandle.current().pid()).iterator();
                })
                .collect();
        assertNotEquals(processes.get(0), processes.get(1));
    }

    @Test
    void anExecutorThatDiesEndsTheTasksThatWaitForIt() {
        JavaRDD<Integer> results = NcclRdd.of(spark.parallelize(List.of(1, 2), 2))
                .deadline(Duration.ofMinutes(10))
                .mapPartitions((communicator, rows) -> {
                    if (communicator.rank() == 1) {
                        Runtime.getRuntime().halt(9);
                    }
                    return List.of(RankSum.of(communicator, 1)).iterator();
                });
        Exception failure = assertThrows(SparkException.class, results::collect);
        assertTrue(failure.getMessage().contains("barrier"), failure.getMessage());
        // Spark starts another executor.
        ranksAreInProcessesOfTheirOwn();
    }

    /** The first attempt of the stage has no last step: only the end of an executor ends it. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void aStageThatLosesAnExecutorContinuesFromTheCheckpoint(int victim, @TempDir Path folder) throws Exception {
        String shared = folder.toString();
        JavaFutureAction<List<CheckpointedGradient.State>> job = NcclRdd.of(
                        spark.parallelize(AveragedGradient.points(), 2))
                .deadline(Duration.ofMinutes(10))
                .mapPartitions((communicator, points) -> descend(communicator, points, shared))
                .repartition(1)
                .collectAsync();
        awaitFile(folder.resolve("state"));
        long victimPid = Long.parseLong(Files.readString(awaitFile(folder.resolve("pid-" + victim + "-0"))));
        assertTrue(ProcessHandle.of(victimPid).orElseThrow().destroyForcibly());

        // The first and the last state of each task; repartitioning mixes them.
        List<CheckpointedGradient.State> states = job.get().stream()
                .sorted(Comparator.comparing(CheckpointedGradient.State::step))
                .toList();
        assertEquals(4, states.size(), states::toString);
        assertEquals(states.get(0), states.get(1));
        assertEquals(states.get(2), states.get(3));
        double resumed = Double.parseDouble(Files.readString(folder.resolve("begin-1")));
        assertTrue(resumed >= 10, "the second attempt began after step " + resumed);
        assertEquals(resumed, states.get(0).step());
        assertEquals(resumed + MORE_STEPS, states.get(2).step());
        assertEquals(3, states.get(2).slope(), 1e-3);
        assertEquals(-1, states.get(2).intercept(), 1e-3);

        // The survivor could wait for ten minutes.
        String survivor = Files.readString(folder.resolve("failure-" + (1 - victim)));
        assertTrue(survivor.matches("(?s)NcclRemoteException: .*\\brank " + victim + "\\b.*"), survivor);
        assertFalse(Files.exists(folder.resolve("failure-" + victim)));
        assertFalse(Files.exists(folder.resolve("pid-0-2")), "the stage ran a third time");
    }

    private static Iterator<CheckpointedGradient.State> descend(
            Communicator communicator, Iterator<AveragedGradient.Point> points, String folder) throws IOException {
        int rank = communicator.rank();
        int attempt = TaskContext.get().stageAttemptNumber();
        Path pid = Path.of(folder, "pid-" + rank + "-" + attempt);
        Files.writeString(Path.of(pid + ".new"), "" + ProcessHandle.current().pid());
        Files.move(Path.of(pid + ".new"), pid);
        if (attempt == 0) {
            try {
                return CheckpointedGradient.descend(communicator, points, folder, Long.MAX_VALUE);
            } catch (RuntimeException e) {
                Files.writeString(
                        Path.of(folder, "failure-" + rank), e.getClass().getSimpleName() + ": " + e.getMessage());
                throw e;
            }
        }
        // Rank 1 may read the same file: the first attempt has ended, and nobody writes before all have begun.
        double begin = CheckpointedGradient.State.read(folder).step();
        Files.writeString(Path.of(folder, "begin-" + attempt), "" + begin);
        RankSum.of(communicator, 1);
        return CheckpointedGradient.descend(communicator, points, folder, (long) begin + MORE_STEPS);
    }

    private static Path awaitFile(Path file) throws InterruptedException {
        Waiting.until(file.toString(), () -> Files.exists(file));
        return file;
    }
}
