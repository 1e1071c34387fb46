package io.github.nccl4j.spark;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.mllib.clustering.KMeans;
import org.apache.spark.mllib.clustering.KMeansModel;
import org.apache.spark.mllib.linalg.Vector;
import org.apache.spark.mllib.linalg.Vectors;

/**
 * Time of an iteration of {@link KMeansOverRanks} on the host engine, of the same arithmetic with Spark's {@code treeAggregate},
 * and of Spark MLlib's own k-means, which is told the first centers. The ways take turns, round by round, on the same
 * cached points; a time includes the start of the jobs, and for nccl4j the communicator's.
 *
 * <p>{@code ./nccl4j test -Pspark -pl integrations/spark -am -Dtest=KMeansComparisonTest -Dsurefire.failIfNoSpecifiedTests=false
 * -Dnccl4j.test.kmeans.rounds=15} runs it, on a machine that does nothing else.
 */
final class KMeansComparison {
    /** The largest difference of a coordinate from that of the other ways, whose sums are added in another order. */
    static final double BOUND = 1e-9;

    private KMeansComparison() {}

    /** Prints the medians of the rounds; throws if the centers of two ways differ. */
    static void run(int tasks, int count, int dimensions, int clusters, int iterations, int rounds, PrintStream out)
            throws Exception {
        SparkConf conf = new SparkConf()
                .setAppName("KMeansComparison")
                .setMaster("local[" + tasks + "]")
                .set("spark.ui.enabled", "false");
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            List<double[]> list = KMeansOverRanks.points(count, dimensions, clusters);
            double[][] first = list.subList(0, clusters).toArray(double[][]::new);
            // Made by the tasks: parallelize would send the points along with each task.
            JavaRDD<double[]> points = spark.parallelize(
                            IntStream.range(0, tasks).boxed().toList(), tasks)
                    .flatMap(part -> KMeansOverRanks.points(count, dimensions, clusters)
                            .subList(part * count / tasks, (part + 1) * count / tasks)
                            .iterator())
                    .cache();
            JavaRDD<Vector> vectors = points.map(Vectors::dense).cache();
            points.count();
            vectors.count();
            List<Callable<double[][]>> ways = List.of(
                    () -> KMeansOverRanks.cluster(points, first, iterations),
                    () -> treeAggregate(points, first, iterations),
                    () -> mllib(vectors, first, iterations));
            double[][] millis = new double[ways.size()][rounds];
            for (int round = -1; round < rounds; round++) {
                double[][] ours = null;
                for (int way = 0; way < ways.size(); way++) {
                    long start = System.nanoTime();
                    double[][] centers = ways.get(way).call();
                    if (round >= 0) {
                        millis[way][round] = (System.nanoTime() - start) / 1e6 / iterations;
                    }
                    ours = way == 0 ? centers : ours;
                    requireEqual(ours, centers);
                }
            }
            double ours = median(millis[0]);
            double tree = median(millis[1]);
            double mllib = median(millis[2]);
            out.printf(
                    Locale.ROOT,
                    "%d tasks, %d points of %d dimensions, %d clusters, ms an iteration, medians of %d rounds of %d"
                            + " iterations: nccl4j %.2f, treeAggregate %.2f, MLlib %.2f, nccl4j / treeAggregate %.2f, nccl4j /"
                            + " MLlib %.2f%n",
                    tasks,
                    count,
                    dimensions,
                    clusters,
                    rounds,
                    iterations,
                    ours,
                    tree,
                    mllib,
                    ours / tree,
                    ours / mllib);
        }
    }

    /** Throws if a coordinate differs by more than {@link #BOUND}. */
    static void requireEqual(double[][] centers, double[][] others) {
        for (int c = 0; c < Math.max(centers.length, others.length); c++) {
            for (int i = 0; i < centers[c].length; i++) {
                if (!(Math.abs(centers[c][i] - others[c][i]) <= BOUND)) {
                    throw new IllegalStateException("center " + c + " must be " + Arrays.toString(centers[c]) + ": "
                            + Arrays.toString(others[c]));
                }
            }
        }
    }

    /** As a program without a communicator does it: a job for each iteration, whose tasks bring the centers along. */
    static double[][] treeAggregate(JavaRDD<double[]> points, double[][] first, int iterations) {
        int dimensions = first[0].length;
        double[][] centers = Arrays.stream(first).map(double[]::clone).toArray(double[][]::new);
        for (int i = 0; i < iterations; i++) {
            double[] sums = points.treeAggregate(
                    new double[centers.length * (dimensions + 1)],
                    (values, point) -> {
                        new KMeansOverRanks.Sums(values, dimensions).add(point, centers);
                        return values;
                    },
                    (values, more) -> {
                        Arrays.setAll(values, k -> values[k] + more[k]);
                        return values;
                    },
                    2);
            new KMeansOverRanks.Sums(sums, dimensions).moveTo(centers);
        }
        return centers;
    }

    /** Spark's own, of the same first centers. It ends early if no center moves. */
    static double[][] mllib(JavaRDD<Vector> points, double[][] first, int iterations) {
        KMeansModel model =
                new KMeansModel(Arrays.stream(first).map(Vectors::dense).toArray(Vector[]::new));
        Vector[] centers = new KMeans()
                .setK(first.length)
                .setInitialModel(model)
                .setMaxIterations(iterations)
                .setEpsilon(0)
                .run(points.rdd())
                .clusterCenters();
        return Arrays.stream(centers).map(Vector::toArray).toArray(double[][]::new);
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }
}
