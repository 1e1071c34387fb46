package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * A sample: k-means over the partitions of an RDD. Each task keeps its points, and in each iteration adds them up by the nearest
 * center; one all-reduce of these sums gives every task the new centers. The whole clustering is one stage of Spark.
 */
public final class KMeansOverRanks {
    private KMeansOverRanks() {}

    /**
     * Runs the sample.
     *
     * @param arguments Spark's master
     */
    public static void main(String[] arguments) {
        SparkConf conf = new SparkConf().setAppName("k-means").setMaster(arguments[0]);
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            List<double[]> points = points(10_000, 2, 4);
            double[][] first = points.subList(0, 4).toArray(double[][]::new);
            System.out.println(Arrays.deepToString(cluster(spark.parallelize(points, 2), first, 20)));
        }
    }

    /** Points around as many centers as there shall be clusters, always the same. */
    static List<double[]> points(int count, int dimensions, int clusters) {
        Random random = new Random(1);
        double[][] centers = new double[clusters][dimensions];
        for (double[] center : centers) {
            Arrays.setAll(center, i -> 10 * random.nextDouble());
        }
        List<double[]> points = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            double[] center = centers[i % clusters];
            double[] point = new double[dimensions];
            Arrays.setAll(point, k -> center[k] + random.nextGaussian());
            points.add(point);
        }
        return points;
    }

    /**
     * Returns the centers after some iterations.
     *
     * @param first the centers before the first iteration
     */
    static double[][] cluster(JavaRDD<double[]> points, double[][] first, int iterations) {
        return NcclRdd.of(points)
                .deadline(Duration.ofSeconds(60))
                .mapPartitions((communicator, rows) -> iterate(communicator, rows, first, iterations))
                .collect()
                .toArray(double[][]::new);
    }

    /** Rank 0 returns the centers, which all ranks have. */
    private static Iterator<double[]> iterate(
            Communicator communicator, Iterator<double[]> rows, double[][] first, int iterations) {
        List<double[]> own = new ArrayList<>();
        rows.forEachRemaining(own::add);
        double[][] centers = Arrays.stream(first).map(double[]::clone).toArray(double[][]::new);
        Sums sums = new Sums(centers.length, first[0].length);
        try (CudaStream stream = CudaStream.nonBlocking(communicator.device());
                DeviceBuffer<Float64> buffer =
                        communicator.device().allocate(ElementType.FLOAT64, sums.values.length)) {
            for (int i = 0; i < iterations; i++) {
                Arrays.fill(sums.values, 0);
                for (double[] point : own) {
                    sums.add(point, centers);
                }
                buffer.copyFrom(sums.values);
                communicator.allReduce(buffer, ReduceOp.SUM, stream);
                communicator.work(stream).await();
                buffer.copyTo(sums.values);
                sums.moveTo(centers);
            }
        }
        return communicator.rank() == 0 ? List.of(centers).iterator() : Collections.emptyIterator();
    }

    /** For each center the sum of its points, and their number. Mutable; not thread-safe. */
    static final class Sums {
        final double[] values;
        private final int dimensions;

        Sums(int centers, int dimensions) {
            this(new double[centers * (dimensions + 1)], dimensions);
        }

        /** Sums in an array of another program. */
        Sums(double[] values, int dimensions) {
            this.values = values;
            this.dimensions = dimensions;
        }

        /** Adds a point to the sum of the nearest center. */
        void add(double[] point, double[][] centers) {
            int nearest = 0;
            double least = Double.POSITIVE_INFINITY;
            for (int c = 0; c < centers.length; c++) {
                double distance = 0;
                for (int i = 0; i < dimensions; i++) {
                    double difference = point[i] - centers[c][i];
                    distance += difference * difference;
                }
                if (distance < least) {
                    least = distance;
                    nearest = c;
                }
            }
            int at = nearest * (dimensions + 1);
            for (int i = 0; i < dimensions; i++) {
                values[at + i] += point[i];
            }
            values[at + dimensions]++;
        }

        /** Moves each center to the mean of its points; one without points stays. */
        void moveTo(double[][] centers) {
            for (int c = 0; c < centers.length; c++) {
                int at = c * (dimensions + 1);
                double count = values[at + dimensions];
                for (int i = 0; count > 0 && i < dimensions; i++) {
                    centers[c][i] = values[at + i] / count;
                }
            }
        }
    }
}
