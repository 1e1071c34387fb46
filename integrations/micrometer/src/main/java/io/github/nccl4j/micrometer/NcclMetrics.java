package io.github.nccl4j.micrometer;

import io.github.nccl4j.highlevel.CallInterceptor;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Counts and times the calls of NCCL in this process for a meter registry. The meters are:
 *
 * <ul>
 *   <li>{@code nccl.calls}, a timer: the number of calls and their time on the host, with the tags {@code function},
 *       {@code communicator} (its name), {@code rank} and {@code result} (NCCL's code). An operation on a GPU may still
 *       run when its call has returned.
 *   <li>{@code nccl.bytes}, a counter: the number of bytes, by the count that was passed to each call; the same tags
 *       without {@code result}.
 * </ul>
 *
 * <p>Call {@code new NcclMetrics().bindTo(registry)} to start, and close the object to end. Without metrics, calls have
 * no additional cost. Methods may be called from any thread.
 *
 * @since 0.1
 */
public final class NcclMetrics implements MeterBinder, AutoCloseable {
    private static final String CALLS = "nccl.calls";
    private static final String BYTES = "nccl.bytes";

    private final List<CallInterceptor.Installed> installed = new CopyOnWriteArrayList<>();

    /** Creates metrics without a registry. */
    public NcclMetrics() {}

    /** Adds a registry, for which later calls are counted. */
    @Override
    public void bindTo(MeterRegistry registry) {
        installed.add(NcclLibrary.intercept(new CallInterceptor() {
            @Override
            public void after(Call call, int result, long nanoseconds) {
                count(registry, call, result, nanoseconds);
            }
        }));
    }

    private static void count(MeterRegistry registry, CallInterceptor.Call call, int result, long nanoseconds) {
        Tags tags = Tags.of(
                "function", call.function(),
                "communicator", call.communicatorName(),
                "rank", call.rank() < 0 ? "" : Integer.toString(call.rank()));
        registry.timer(CALLS, tags.and("result", Integer.toString(result))).record(Duration.ofNanos(nanoseconds));
        if (call.bytes() > 0) {
            registry.counter(BYTES, tags).increment(call.bytes());
        }
    }

    /** Ends the counting for all registries. Their meters keep their values. */
    @Override
    public void close() {
        installed.forEach(CallInterceptor.Installed::close);
    }
}
