package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import java.time.Duration;
import java.util.Objects;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * An RDD whose partitions are the ranks of a communicator: its tasks run at the same time, and can use every operation of
 * {@link Communicator} between them.
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
 * <p><b>Ranks.</b> A task's rank is the number of its partition. All tasks must fit on the executors at once, or Spark fails
 * the job; an RDD is brought to the right number of partitions by {@code repartition}. Dynamic allocation of executors does
 * not go together with barrier stages.
 *
 * <p><b>Devices.</b> A task works on the GPU that Spark gave it: set {@code spark.executor.resource.gpu.amount} and {@code
 * spark.task.resource.gpu.amount=1}. Where tasks have no GPU of their own, the tasks of one machine take its GPUs one by one.
 * With the host engine it is host memory.
 *
 * <p><b>Libraries.</b> Executors load libnccl as any program does; {@code spark.executorEnv.NCCL4J_LIBRARY} or {@code
 * spark.executor.extraJavaOptions=-Dnccl4j.engine=host} choose it. All must load the same release.
 *
 * <p><b>Failures.</b> When a task fails, Spark wants all tasks of the stage to end, but can't end one that waits in native
 * code. A thread beside each task sees it and aborts the task's communicator, so that the task ends within moments. Spark
 * then runs the whole stage again, with a new communicator, but only if a shuffle follows: a stage that ends in an action
 * fails the job at once. {@code repartition} after {@link #mapPartitions} makes such a shuffle.
 *
 * <p>The communicator's id travels through Spark's own messages; {@code spark.authenticate} and {@code
 * spark.network.crypto.enabled} protect them.
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
     * An RDD with default settings.
     *
     * @param <T> the type of the rows
     * @param rdd the RDD
     * @return the same rows
     */
    public static <T> NcclRdd<T> of(JavaRDD<T> rdd) {
        return new NcclRdd<>(rdd.rdd(), Communicator.DEFAULT_DEADLINE, builder -> {});
    }

    /**
     * How long tasks wait for each other: before the communicator is made, and in each of its calls. Default: {@link
     * Communicator#DEFAULT_DEADLINE}.
     *
     * @param limit the limit, more than 0
     * @return the same rows with this limit
     * @throws IllegalArgumentException if it is not more than 0
     */
    public NcclRdd<T> deadline(Duration limit) {
        if (limit.isZero() || limit.isNegative()) {
            throw new IllegalArgumentException("deadline must be > 0: " + limit);
        }
        return new NcclRdd<>(rdd, limit, settings);
    }

    /**
     * Further settings of the communicator: {@code configure(builder -> builder.config(...))}. They replace those of an
     * earlier call.
     *
     * @param more applied in each task, before the communicator is made
     * @return the same rows with these settings
     */
    public NcclRdd<T> configure(CommunicatorSettings more) {
        return new NcclRdd<>(rdd, deadline, Objects.requireNonNull(more, "more"));
    }

    /**
     * Runs a function on each partition, all at the same time, each with a rank of one communicator. As all transformations
     * it does nothing before an action needs the result, and does it again for each action unless the result is cached.
     *
     * <p>A task fails with {@link io.github.nccl4j.launch.RendezvousTimeoutException} or {@link
     * io.github.nccl4j.highlevel.NcclTimeoutException} if not all tasks have joined in time, with {@link
     * io.github.nccl4j.launch.RendezvousException} if two tasks use one GPU, and with {@link IllegalStateException} if the
     * tasks loaded different libraries.
     *
     * @param <R> the type of the results
     * @param function what a task does
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
