package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.PreMulSum;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** What random calls of all threads use: places for things, which may be closed, and are replaced now and then. */
final class RandomThings {
    static final int ARENA_BYTES = 1 << 16;

    final Device device = Device.host();
    /** One rank each, so that no call waits for another one. */
    final AtomicReferenceArray<Communicator> communicators = new AtomicReferenceArray<>(6);

    final AtomicReferenceArray<DeviceBuffer<?>> buffers = new AtomicReferenceArray<>(24);
    final AtomicReferenceArray<CudaStream> streams = new AtomicReferenceArray<>(4);
    final AtomicReferenceArray<CudaEvent> events = new AtomicReferenceArray<>(4);
    /** Events that do not take the time. */
    final AtomicReferenceArray<CudaEvent> marks = new AtomicReferenceArray<>(4);

    final AtomicReferenceArray<PreMulSum<?>> operators = new AtomicReferenceArray<>(6);
    final AtomicReferenceArray<Group> groups = new AtomicReferenceArray<>(4);
    /** The memory of all plain addresses, never closed before the end. */
    final DeviceBuffer<?> arena = device.allocate(ElementType.UINT8, ARENA_BYTES);

    RandomThings() {
        for (int i = 0; i < communicators.length(); i++) {
            communicators.set(i, communicator(i % 3 != 0));
        }
        for (int i = 0; i < buffers.length(); i++) {
            buffers.set(i, device.allocate(ElementType.values().get(i % 12), 1 << i % 5));
        }
        for (int i = 0; i < streams.length(); i++) {
            streams.set(i, CudaStream.nonBlocking(device));
            events.set(i, CudaEvent.timing(device));
            marks.set(i, CudaEvent.create(device));
        }
        for (int i = 0; i < operators.length(); i++) {
            operators.set(i, communicators.get(i).preMulSum(ElementType.FLOAT32, i));
        }
    }

    Communicator communicator(boolean blocking) {
        return Communicator.builder()
                .config(CommunicatorConfig.builder().blocking(blocking).build())
                // Calls that wait for ranks that don't exist end soon.
                .deadline(Duration.ofMillis(200))
                .createAll(List.of(device))
                .get(0);
    }

    /** Puts a thing into a place, and gives up the one before. */
    <T extends AutoCloseable> void replace(AtomicReferenceArray<T> places, int place, T thing) throws Exception {
        T before = places.getAndSet(place, thing);
        if (before instanceof Communicator communicator) {
            // It may be in use, which closing refuses.
            communicator.abort();
        } else if (before != null) {
            before.close();
        }
    }

    void close() {
        for (int i = 0; i < communicators.length(); i++) {
            communicators.get(i).abort();
        }
        for (int i = 0; i < buffers.length(); i++) {
            buffers.get(i).close();
        }
        arena.close();
    }
}
