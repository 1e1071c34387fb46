package io.github.nccl4j.tests.host;

import static io.github.nccl4j.tests.host.HostEngineTest.inThreads;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.junit.jupiter.api.Test;

/** Where an operation runs, and how its elements come from the rings of the other ranks. */
class HostEnginePathsTest {
    private static final int MANY = 100;

    private static void allReduce(Rank self, long address, long count, long stream) {
        Rank.check(
                nccl.ncclAllReduce(address, address, count, nccl.ncclFloat, nccl.ncclSum, self.comm(), stream),
                "ncclAllReduce");
    }

    @Test
    void anEnqueuedOperationDoesNotWaitForTheOtherRank() throws Exception {
        CountDownLatch enqueued = new CountDownLatch(1);
        inThreads(2, self -> {
            try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                    FloatPointer data = new FloatPointer(MANY)) {
                if (self.rank() == 1) {
                    assertTrue(enqueued.await(60, TimeUnit.SECONDS), "rank 0 waits in its call");
                }
                for (int i = 0; i < MANY; i++) {
                    data.put(i, 1 + i);
                    allReduce(self, data.address() + (long) i * Float.BYTES, 1, stream.nativeHandle());
                }
                enqueued.countDown();
                stream.synchronize();
                for (int i = 0; i < MANY; i++) {
                    assertEquals(2 + 2 * i, data.get(i));
                }
            }
            self.destroy();
            return null;
        });
    }

    @Test
    void elementsMayLieAcrossTheEndOfARing() throws Exception {
        inThreads(3, self -> {
            int count = 3 << 18;
            try (BytePointer odd = new BytePointer(3);
                    FloatPointer data = new FloatPointer(count)) {
                for (int shift = 0; shift < 4; shift++) {
                    Rank.check(
                            nccl.ncclAllGather(
                                    odd.address() + self.rank(), odd.address(), 1, nccl.ncclInt8, self.comm(), 0),
                            "ncclAllGather");
                    for (int i = 0; i < count; i++) {
                        data.put(i, i % 1000 + self.rank());
                    }
                    allReduce(self, data.address(), count, 0);
                    for (int i = 0; i < count; i++) {
                        assertEquals(i % 1000 * 3 + 3, data.get(i));
                    }
                }
            }
            self.destroy();
            return null;
        });
    }
}
