package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * A sample: fits a line through points that lie in the partitions of an RDD. Each task computes the gradient of its own
 * points; before every step the tasks average their gradients, so that all take the same step.
 */
public final class AveragedGradient {
    private static final float SLOPE = 3;
    private static final float INTERCEPT = -1;
    private static final int POINTS = 2000;
    private static final int STEPS = 200;
    private static final float RATE = 0.5f;

    private AveragedGradient() {}

    /** A point of the plane. */
    public record Point(float x, float y) implements Serializable {}

    /**
     * Runs the sample.
     *
     * @param arguments Spark's master
     */
    public static void main(String[] arguments) {
        SparkConf conf = new SparkConf().setAppName("averaged gradient").setMaster(arguments[0]);
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            System.out.println(Arrays.toString(fit(spark, 2)));
        }
    }

    /** The line, as every task has found it: slope, intercept, slope, ... */
    static float[] fit(JavaSparkContext spark, int partitions) {
        JavaRDD<Point> points = spark.parallelize(points(), partitions);
        List<Float> lines = NcclRdd.of(points)
                .deadline(Duration.ofSeconds(60))
                .mapPartitions(AveragedGradient::descend)
                .collect();
        float[] all = new float[lines.size()];
        for (int i = 0; i < all.length; i++) {
            all[i] = lines.get(i);
        }
        for (int i = 2; i < all.length; i++) {
            if (all[i] != all[i % 2]) {
                throw new IllegalStateException("task " + i / 2 + " has another line than task 0: " + lines);
            }
        }
        if (Math.abs(all[0] - SLOPE) > 1e-3 || Math.abs(all[1] - INTERCEPT) > 1e-3) {
            throw new IllegalStateException("the line is not y = " + SLOPE + " x + " + INTERCEPT + ": " + lines);
        }
        return all;
    }

    static List<Point> points() {
        Random random = new Random(1);
        return IntStream.range(0, POINTS)
                .mapToObj(i -> {
                    float x = 2 * random.nextFloat() - 1;
                    return new Point(x, SLOPE * x + INTERCEPT);
                })
                .toList();
    }

    private static Iterator<Float> descend(Communicator communicator, Iterator<Point> rows) {
        List<Point> own = new ArrayList<>();
        rows.forEachRemaining(own::add);
        float[] line = new float[2];
        Device device = communicator.device();
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, line.length)) {
            for (int step = 0; step < STEPS; step++) {
                float[] gradient = gradient(own, line);
                buffer.copyFrom(gradient);
                communicator.allReduce(buffer, ReduceOp.AVG, stream);
                communicator.work(stream).await();
                buffer.copyTo(gradient);
                line[0] -= RATE * gradient[0];
                line[1] -= RATE * gradient[1];
            }
        }
        return List.of(line[0], line[1]).iterator();
    }

    private static float[] gradient(List<Point> points, float[] line) {
        float[] gradient = new float[2];
        for (Point point : points) {
            float error = line[0] * point.x() + line[1] - point.y();
            gradient[0] += error * point.x() / points.size();
            gradient[1] += error / points.size();
        }
        return gradient;
    }
}
