package io.github.nccl4j.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class NcclMetricsTest {

    @Test
    void callsBytesAndTimesAreCounted() {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        CommunicatorConfig config =
                CommunicatorConfig.builder().commName("train").build();
        NcclMetrics metrics = new NcclMetrics();
        try (Communicator communicator = Communicator.builder().config(config).create(UniqueId.create(), 0, 1);
                DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 10)) {
            metrics.bindTo(registry);
            CudaStream stream = CudaStream.defaultOf(communicator.device());
            for (int i = 0; i < 3; i++) {
                communicator.allReduce(buffer, ReduceOp.SUM, stream);
            }
            nccl.ncclGetVersion((int[]) null);
            metrics.close();
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
        }
        Timer sums = registry.get("nccl.calls")
                .tags("function", "ncclAllReduce", "communicator", "train", "rank", "0", "result", "0")
                .timer();
        assertEquals(3, sums.count());
        assertTrue(sums.totalTime(TimeUnit.NANOSECONDS) > 0);
        assertEquals(
                120,
                registry.get("nccl.bytes")
                        .tags("function", "ncclAllReduce", "communicator", "train")
                        .counter()
                        .count());
        assertEquals(
                1,
                registry.get("nccl.calls")
                        .tags("function", "ncclGetVersion", "rank", "", "result", "4")
                        .timer()
                        .count());
    }
}
