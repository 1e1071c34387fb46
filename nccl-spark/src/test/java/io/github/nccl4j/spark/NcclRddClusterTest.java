package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two executors, each a process of its own, on the host engine. */
@Timeout(600)
class NcclRddClusterTest {
    private static JavaSparkContext spark;

    @BeforeAll
    static void start() throws Exception {
        // Workers look for Spark's jars here; they come with the class path.
        Files.createDirectories(Path.of(System.getProperty("nccl4j.test.spark.home"), "jars"));
        spark = new JavaSparkContext(new SparkConf()
                .setAppName("NcclRddClusterTest")
                .setMaster("local-cluster[2,1,512]")
                .set("spark.ui.enabled", "false")
                .set("spark.executor.memory", "512m")
                .set("spark.executor.extraClassPath", System.getProperty("java.class.path"))
                .set("spark.executor.extraJavaOptions", "-Dnccl4j.engine=host -XX:+UseSerialGC -XX:TieredStopAtLevel=1")
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
}
