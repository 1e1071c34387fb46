package io.github.nccl4j.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Profiler;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Histograms of kernels, on the host engine; the build sets nccl4j.profile to ready. */
class NcclKernelMetricsTest {

    @Test
    void kernelsAreCountedBySizeAndCommunicator() {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        CommunicatorConfig config =
                CommunicatorConfig.builder().commName("kernels").build();
        NcclKernelMetrics metrics = new NcclKernelMetrics();
        metrics.bindTo(registry);
        metrics.bindTo(prometheus);
        try (Communicator communicator = Communicator.builder().config(config).create(UniqueId.create(), 0, 1);
                DeviceBuffer<Float32> small = Device.host().allocate(ElementType.FLOAT32, 1024);
                DeviceBuffer<Float32> large = Device.host().allocate(ElementType.FLOAT32, 1025)) {
            CudaStream stream = CudaStream.defaultOf(communicator.device());
            communicator.allReduce(small, ReduceOp.SUM, stream);
            Profiler.start();
            for (int i = 0; i < 3; i++) {
                communicator.allReduce(small, ReduceOp.SUM, stream);
            }
            communicator.broadcast(large, 0, stream);
            Profiler.stop();
            metrics.close();
            Profiler.start();
            communicator.broadcast(large, 0, stream);
            Profiler.stop();
        }
        String[] tags = {"function", "ncclAllReduce", "size", "4KiB", "communicator", "kernels", "rank", "0"};
        assertEquals(3, registry.get("nccl.kernel").tags(tags).timer().count());
        assertTrue(registry.get("nccl.kernel").tags(tags).timer().totalTime(TimeUnit.NANOSECONDS) > 0);
        assertEquals(3, registry.get("nccl.kernel.queued").tags(tags).timer().count());
        assertEquals(
                3,
                registry.get("nccl.kernel.bus.bandwidth").tags(tags).summary().count());
        assertEquals(
                1,
                registry.get("nccl.kernel")
                        .tags("function", "ncclBroadcast", "size", "64KiB")
                        .timer()
                        .count());
        String text = prometheus.scrape();
        assertTrue(
                text.matches(
                        "(?s).*nccl_kernel_seconds_bucket\\{[^}]*function=\"ncclAllReduce\"[^}]*le=\"[^}]*} 3\\n.*"),
                text);
    }

    @Test
    void sizeClassesHaveUpperLimits() {
        assertEquals("4KiB", NcclKernelMetrics.sizeClass(4096));
        assertEquals("64KiB", NcclKernelMetrics.sizeClass(4097));
        assertEquals("256MiB", NcclKernelMetrics.sizeClass(256 << 20));
        assertEquals("larger", NcclKernelMetrics.sizeClass((256 << 20) + 1));
    }
}
