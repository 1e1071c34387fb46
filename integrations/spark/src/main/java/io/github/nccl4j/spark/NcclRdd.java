package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import java.time.Duration;
import java.util.Objects;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * An RDD whose partitions are the ranks of a communicator. The tasks of the RDD run at the same time and can use every
 * operation of {@link Communicator}.
 *
 * <pre>{@code
 * JavaRDD<Float> sums = NcclRdd.of(rdd).deadline(Duration.ofMinutes(1)).mapPartitions((communicator, rows) -> {
 *     float[] sum = new float[1];
 *     while (rows.hasNext()) {
 *         sum[0] += rows.next();
 *     }
 *     Device device = communicator.device();
 *     try (DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, 1);
 *             CudaStream stream = CudaStream.nonBlocking(device)) {
 *         buffer.copyFrom(sum);
 *         communicator.allReduce(buffer, ReduceOp.SUM, stream);
 *         communicator.work(stream).await();
 *         buffer.copyTo(sum);
 *     }
 *     return List.of(sum[0]).iterator();
 * });
 * }</pre>
 *
 * <p><b>Ranks.</b> A task's rank is the number of its partition. All tasks must fit on the executors at once; otherwise
 * Spark fails the job. {@code repartition} changes the number of partitions of an RDD. Spark does not support barrier
 * stages with dynamic allocation of executors.
 *
 * <p><b>Devices.</b> A task uses the GPU that Spark assigned to it: set {@code spark.executor.resource.gpu.amount} and
 * {@code spark.task.resource.gpu.amount=1}. If Spark assigns no GPUs, the tasks of one machine use its GPUs in the
 * order of their ranks. With the host engine, tasks use host memory.
 *
 * <p><b>Libraries.</b> Executors load libnccl as any program does; {@code spark.executorEnv.NCCL4J_LIBRARY} or {@code
 * spark.executor.extraJavaOptions=-Dnccl4j.engine=host} choose the library. All executors must load the same release.
 *
 * <p><b>Failures.</b> When a task fails, Spark ends all tasks of the stage, but can't end a task that waits in native
 * code. A thread beside each task detects the end and aborts the task's communicator; the task then returns within
 * moments. Spark then runs the whole stage again, with a new communicator, but only if a shuffle follows: if a stage
 * ends in an action, the job fails at once. {@code repartition} after {@link #mapPartitions} adds such a shuffle.
 *
 * <p>Spark's own messages carry the communicator's id; {@code spark.authenticate} and {@code
 * spark.network.crypto.enabled} protect these messages.
 *
 * <p>Instances are immutable, and may be used in any thread of the driver.
 *
 * @param <T> the type of the rows
 * @since 0.1
 */
public final class NcclRdd<T> {
    private final RDD<T> rdd;
    private final Duration deadline;
    private final CommunicatorSettings settings;

    private NcclRdd(RDD<T> rdd, Duration deadline, CommunicatorSettings settings) {
        this.rdd = rdd;
        this.deadline = deadline;
        this.settings = settings;
    }

    /**
     * Returns an RDD with default settings.
     *
     * @param <T> the type of the rows
     * @param rdd the RDD
     * @return an RDD of the same rows */
    public static <T> NcclRdd<T> of(JavaRDD<T> rdd) {
        return new NcclRdd<>(rdd.rdd(), Communicator.DEFAULT_DEADLINE, builder -> {});
    }

    /**
     * Sets the time for which tasks wait for each other, before the communicator is created and in each of its calls.
     * Default: {@link Communicator#DEFAULT_DEADLINE}.
     *
     * @param limit the limit, more than 0
     * @return an RDD of the same rows with this limit
     * @throws IllegalArgumentException if the limit is not more than 0
     */
    public NcclRdd<T> deadline(Duration limit) {
        if (limit.isZero() || limit.isNegative()) {
            throw new IllegalArgumentException("deadline must be > 0: " + TaskWatch.seconds(limit));
        }
        return new NcclRdd<>(rdd, limit, settings);
    }

    /**
     * Sets further settings of the communicator: {@code configure(builder -> builder.config(...))}. They replace the
     * settings of an earlier call.
     *
     * @param more the settings, which each task applies before the communicator is created
     * @return an RDD of the same rows with these settings
     */
    public NcclRdd<T> configure(CommunicatorSettings more) {
        return new NcclRdd<>(rdd, deadline, Objects.requireNonNull(more, "more"));
    }

    /**
     * Runs a function on each partition, on all partitions at the same time, each with a rank of one communicator. As
     * all transformations of Spark, the function runs when an action needs the result, and again for each further
     * action unless the result is cached.
     *
     * <p>A task fails with {@link io.github.nccl4j.launch.RendezvousTimeoutException} or {@link
     * io.github.nccl4j.highlevel.NcclTimeoutException} if not all tasks have joined in time, with {@link
     * io.github.nccl4j.launch.RendezvousException} if two tasks use one GPU, and with {@link IllegalStateException} if the
     * tasks loaded different libraries.
     *
     * @param <R> the type of the results
     * @param function the function of a task
     * @return the results, in the same partitions
     */
    public <R> JavaRDD<R> mapPartitions(CommunicatorFunction<T, R> function) {
        Objects.requireNonNull(function, "function");
        @SuppressWarnings("unchecked")
        ClassTag<R> anyClass = (ClassTag<R>) ClassTag$.MODULE$.apply(Object.class);
        return rdd.barrier()
                .mapPartitions(new RankTask<>(function, settings, deadline), false, anyClass)
                .toJavaRDD();
    }
}
