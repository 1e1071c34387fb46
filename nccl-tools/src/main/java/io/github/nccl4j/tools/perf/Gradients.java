package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** A rank of {@code nccl4j gradients}: checks and times each way to average the gradients. Not thread-safe. */
final class Gradients implements AutoCloseable {
    /** The values of a gradient repeat after so many elements: a prime, so that no two parts of a bucket look alike. */
    private static final int PERIOD = 61;
    /** Below this wait, a thread that sleeps wakes too late. */
    private static final long SPIN_NANOS = 60_000;

    private final Communicator communicator;
    private final GradientLayout layout;
    private final int iterations;
    private final CudaStream stream;
    private final DeviceBuffer<Float64> slowest;
    private final List<DeviceBuffer<Float32>> gradients = new ArrayList<>();
    /** This rank's values, from which each gradient takes a part. */
    private final DeviceBuffer<Float32> values;

    private final float[] averages;
    private final float[] found;

    /**
     * A measured way.
     *
     * @param bucketBytes the size that a bucket does not exceed, or 0
     * @param operations the number of operations or groups
     * @param aloneMillis time of an exchange whose gradients are all there
     * @param behindMillis time from the end of the backward pass to the end of the exchange
     * @param wrong the number of wrong elements on all ranks
     */
    record Result(
            GradientExchange.Way way,
            long bucketBytes,
            int operations,
            double aloneMillis,
            double behindMillis,
            long wrong) {}

    Gradients(Communicator communicator, GradientLayout layout, int iterations) {
        this.communicator = communicator;
        this.layout = layout;
        this.iterations = iterations;
        int length = Math.toIntExact(layout.longest()) + PERIOD;
        averages = new float[length];
        found = new float[length];
        stream = CudaStream.nonBlocking(communicator.device());
        slowest = communicator.device().allocate(ElementType.FLOAT64, 1);
        values = communicator.device().allocate(ElementType.FLOAT32, length);
        try {
            for (long elements : layout.lengths()) {
                gradients.add(communicator.device().allocate(ElementType.FLOAT32, elements));
            }
            fillValues();
        } catch (RuntimeException | Error failed) {
            close();
            throw failed;
        }
    }

    /** Multiples of the number of ranks, so that averages are exact. */
    private void fillValues() {
        int size = communicator.size();
        float[] own = new float[averages.length];
        for (int i = 0; i < own.length; i++) {
            for (int rank = 0; rank < size; rank++) {
                averages[i] += value(i, rank);
            }
            own[i] = size * value(i, communicator.rank());
        }
        values.copyFrom(own);
    }

    private static float value(int index, int rank) {
        return (index + 3 * rank) % PERIOD;
    }

    /** Measures a way beside a backward pass of the given time. */
    Result measure(GradientExchange.Way way, long bucketBytes, double backwardMillis) {
        List<GradientLayout.Bucket> buckets = layout.buckets(bucketBytes / Float.BYTES);
        try (GradientExchange exchange = GradientExchange.of(way, communicator, stream, gradients, buckets)) {
            long wrong = wrong(exchange);
            double alone = median(exchange, 0);
            double behind = backwardMillis > 0 ? median(exchange, backwardMillis) : Double.NaN;
            int operations =
                    switch (way) {
                        case ONE_BY_ONE -> layout.count();
                        case ONE_GROUP -> 1;
                        default -> buckets.size();
                    };
            return new Result(way, bucketBytes, operations, alone, behind, wrong);
        }
    }

    /** Compares every element of an exchange with the average; returns the number of wrong ones on all ranks. */
    private long wrong(GradientExchange exchange) {
        for (int i = 0; i < layout.count(); i++) {
            exchange.source(i)
                    .copyFrom(values.slice(i % PERIOD, layout.lengths().get(i)));
        }
        step(exchange, 0);
        long wrong = 0;
        for (int i = 0; i < layout.count(); i++) {
            int length = Math.toIntExact(layout.lengths().get(i));
            exchange.result(i).copyTo(FloatBuffer.wrap(found, 0, length));
            int shift = i % PERIOD;
            if (!Arrays.equals(found, 0, length, averages, shift, shift + length)) {
                for (int k = 0; k < length; k++) {
                    wrong += found[k] == averages[shift + k] ? 0 : 1;
                }
            }
        }
        return (long) overRanks(wrong, ReduceOp.SUM);
    }

    /** The median over the iterations of the milliseconds on the slowest rank after the end of the backward pass. */
    private double median(GradientExchange exchange, double backwardMillis) {
        double[] millis = new double[iterations];
        for (int i = -2; i < iterations; i++) {
            overRanks(0, ReduceOp.MAX);
            double time = overRanks(step(exchange, (long) (backwardMillis * 1e6)), ReduceOp.MAX);
            if (i >= 0) {
                millis[i] = time;
            }
        }
        Arrays.sort(millis);
        return millis[iterations / 2];
    }

    /** An exchange whose gradients come one after the other, each in the part of the pass that its length has of all. */
    private double step(GradientExchange exchange, long backwardNanos) {
        long total = layout.total();
        long start = System.nanoTime();
        long elements = 0;
        for (int i = 0; i < layout.count(); i++) {
            if (backwardNanos > 0) {
                elements += layout.lengths().get(i);
                waitUntil(start + (long) ((double) backwardNanos * elements / total));
            }
            exchange.ready(i);
        }
        stream.synchronize();
        return (System.nanoTime() - start - backwardNanos) / 1e6;
    }

    private static void waitUntil(long nanos) {
        for (long rest = nanos - System.nanoTime(); rest > 0; rest = nanos - System.nanoTime()) {
            if (rest > 2 * SPIN_NANOS) {
                LockSupport.parkNanos(rest - SPIN_NANOS);
            } else {
                Thread.onSpinWait();
            }
        }
    }

    private double overRanks(double own, ReduceOp op) {
        slowest.fill(own);
        communicator.allReduce(slowest, op, stream);
        stream.synchronize();
        double[] result = new double[1];
        slowest.copyTo(result);
        return result[0];
    }

    @Override
    public void close() {
        gradients.forEach(DeviceBuffer::close);
        values.close();
        slowest.close();
        stream.close();
    }
}
