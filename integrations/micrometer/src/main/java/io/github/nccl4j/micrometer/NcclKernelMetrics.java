package io.github.nccl4j.micrometer;

import io.github.nccl4j.highlevel.Incubating;
import io.github.nccl4j.highlevel.ProfiledOperation;
import io.github.nccl4j.highlevel.Profiler;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Histograms of the operations that the {@link Profiler} records. The meters are:
 *
 * <ul>
 *   <li>{@code nccl.kernel}, a timer: the time of the kernel on the GPU.
 *   <li>{@code nccl.kernel.queued}, a timer: the time from the launch to the start of the kernel.
 *   <li>{@code nccl.kernel.bus.bandwidth}, a summary in 10<sup>9</sup> bytes per second.
 * </ul>
 *
 * <p>All have the tags {@code function}, {@code size} (the class of sizes: {@code 4KiB}, {@code 64KiB}, {@code 1MiB}, {@code
 * 16MiB}, {@code 256MiB} and {@code larger} have the operations of at most this size), {@code communicator} (its name) and {@code
 * rank}. Operations without times of a kernel are not counted.
 *
 * <p>Call {@code new NcclKernelMetrics().bindTo(registry)} to begin, and close the object to end. The profiler must be started
 * by {@link Profiler#start} or by its setting. Methods may be called from any thread.
 *
 * @since 0.1
 */
@Incubating
public final class NcclKernelMetrics implements MeterBinder, AutoCloseable {
    private static final List<String> SIZES = List.of("4KiB", "64KiB", "1MiB", "16MiB", "256MiB");
    private static final long SMALLEST = 4096;
    private static final int STEP = 4;

    private final List<Profiler.Subscription> subscriptions = new CopyOnWriteArrayList<>();

    /** Creates metrics without a registry. */
    public NcclKernelMetrics() {}

    /** Adds a registry, for which later operations are counted. */
    @Override
    public void bindTo(MeterRegistry registry) {
        subscriptions.add(Profiler.subscribe(operation -> count(registry, operation)));
    }

    private static void count(MeterRegistry registry, ProfiledOperation operation) {
        if (operation.kernelTime().isEmpty()) {
            return;
        }
        Tags tags = Tags.of(
                "function", operation.function(),
                "size", sizeClass(operation.bytes()),
                "communicator", operation.name(),
                "rank", operation.rank() < 0 ? "" : Integer.toString(operation.rank()));
        Timer.builder("nccl.kernel")
                .description("Time of a kernel of NCCL on the GPU")
                .tags(tags)
                .publishPercentileHistogram()
                .register(registry)
                .record(operation.kernelTime().get());
        operation.queued().ifPresent(queued -> Timer.builder("nccl.kernel.queued")
                .description("Time from the launch of an operation to the start of its kernel")
                .tags(tags)
                .publishPercentileHistogram()
                .register(registry)
                .record(queued));
        operation.busBandwidth().ifPresent(bandwidth -> DistributionSummary.builder("nccl.kernel.bus.bandwidth")
                .description("Bus bandwidth of an operation in 10^9 bytes per second")
                .tags(tags)
                .publishPercentileHistogram()
                .register(registry)
                .record(bandwidth));
    }

    static String sizeClass(long bytes) {
        long limit = SMALLEST;
        for (String size : SIZES) {
            if (bytes <= limit) {
                return size;
            }
            limit <<= STEP;
        }
        return "larger";
    }

    /** Ends the counting for all registries. Their meters keep their values. */
    @Override
    public void close() {
        subscriptions.forEach(Profiler.Subscription::close);
    }
}
