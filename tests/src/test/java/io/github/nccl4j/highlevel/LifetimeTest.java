package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.cuda.NativeEvent;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.memory.Lifetime;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Closing, uses and pins, in any order and in several threads. */
class LifetimeTest {
    private final Lifetime lifetime = new Lifetime("the thing");
    private final AtomicInteger freed = new AtomicInteger();

    private void close() {
        lifetime.close(freed::incrementAndGet);
    }

    @Test
    void closingFreesOnce() {
        lifetime.check();
        close();
        close();
        assertEquals(1, freed.get());
        assertFalse(lifetime.isOpen());
        for (Runnable use : List.<Runnable>of(lifetime::check, lifetime::acquire, lifetime::pin)) {
            IllegalStateException closed = assertThrows(IllegalStateException.class, use::run);
            assertEquals("the thing is closed", closed.getMessage());
        }
    }

    @Test
    void pinsAreCounted() {
        assertEquals(0, lifetime.pins());
        lifetime.pin();
        lifetime.pin();
        assertEquals(2, lifetime.pins());
        close();
        assertEquals(2, lifetime.pins());
        lifetime.unpin();
        assertEquals(1, lifetime.pins());
    }

    @Test
    void olderLifetimeIsAcquiredFirst() {
        Lifetime younger = new Lifetime("another thing");
        assertTrue(lifetime.isBefore(younger));
        assertFalse(younger.isBefore(lifetime));
        assertFalse(lifetime.isBefore(lifetime));
    }

    @Test
    void closeWaitsForUsesAndIsThenVisible() throws InterruptedException {
        lifetime.acquire();
        Thread closing = new Thread(this::close, "who closes");
        closing.start();
        Waiting.until("a close that waits", () -> {
            assertTrue(closing.isAlive(), "closed during a use");
            return closing.getState() == Thread.State.WAITING;
        });
        assertTrue(lifetime.isOpen());
        lifetime.release();
        closing.join(30_000);
        assertEquals(1, freed.get());
        Thread other = new Thread(() -> assertThrows(IllegalStateException.class, lifetime::acquire), "another");
        other.setDaemon(true);
        other.start();
        other.join(30_000);
        assertFalse(other.isAlive());
        // A refused acquire holds no lock either.
        Thread again = new Thread(this::close, "who closes again");
        again.setDaemon(true);
        again.start();
        again.join(30_000);
        assertFalse(again.isAlive());
    }

    @Test
    void lastPinFreesClosedObject() {
        lifetime.pin();
        lifetime.pin();
        lifetime.unpin();
        lifetime.pin();
        close();
        assertFalse(lifetime.isOpen());
        assertThrows(IllegalStateException.class, lifetime::pin);
        assertThrows(IllegalStateException.class, lifetime::acquire);
        close();
        lifetime.unpin();
        assertEquals(0, freed.get());
        lifetime.unpin();
        assertEquals(1, freed.get());
        close();
        assertEquals(1, freed.get());
    }

    @Test
    void closeFreesAfterPinsHaveEnded() {
        lifetime.pin();
        lifetime.unpin();
        assertTrue(lifetime.isOpen());
        assertEquals(0, freed.get());
        close();
        assertEquals(1, freed.get());
    }

    @Test
    void rejectsUnpinWithoutPin() {
        assertThrows(IllegalStateException.class, lifetime::unpin);
        assertTrue(lifetime.isOpen());
        close();
        IllegalStateException e = assertThrows(IllegalStateException.class, lifetime::unpin);
        assertEquals("the thing is not pinned", e.getMessage());
        assertEquals(1, freed.get());
    }

    @Test
    void logsFailureOfLastUnpin() {
        try (TestLog log = new TestLog()) {
            lifetime.pin();
            lifetime.close(() -> {
                throw new IllegalArgumentException("the device is gone");
            });
            lifetime.unpin();
            assertEquals(List.of("WARNING: the thing was closed, but could not be freed later"), log.lines());
            assertEquals("the device is gone", log.records().get(0).getThrown().getMessage());
        }
        assertThrows(IllegalArgumentException.class, () -> new Lifetime("other").close(() -> {
            throw new IllegalArgumentException("without pins it is thrown");
        }));
    }

    @Test
    void concurrentClosesFreeOnce() throws InterruptedException {
        for (int round = 0; round < 300; round++) {
            Lifetime shared = new Lifetime("shared");
            AtomicInteger times = new AtomicInteger();
            AtomicInteger wrong = new AtomicInteger();
            CyclicBarrier start = new CyclicBarrier(4);
            Thread[] threads = new Thread[4];
            for (int i = 0; i < threads.length; i++) {
                boolean closes = i == 0;
                threads[i] = new Thread(() -> {
                    try {
                        start.await();
                        if (closes) {
                            shared.close(times::incrementAndGet);
                            return;
                        }
                        for (int n = 0; n < 200; n++) {
                            shared.pin();
                            if (times.get() != 0) {
                                wrong.incrementAndGet();
                            }
                            shared.unpin();
                        }
                    } catch (IllegalStateException closed) {
                        // A pin after the close throws this.
                    } catch (Exception e) {
                        wrong.incrementAndGet();
                    }
                });
                threads[i].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(1, times.get());
            assertEquals(0, wrong.get());
        }
    }

    @Test
    void pinOfSliceKeepsMemory() {
        DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 8);
        buffer.fill(3);
        DeviceBuffer<Float32> slice = buffer.slice(2, 4);
        DeviceBuffer<Float32> inner = slice.slice(1, 2);
        inner.nativeBuffer.pin();
        buffer.close();
        for (DeviceBuffer<Float32> closed : List.of(buffer, slice, inner)) {
            assertThrows(IllegalStateException.class, closed::address);
            assertThrows(IllegalStateException.class, closed.nativeBuffer::pin);
        }
        // Not freed yet, or it would contain the allocator's own data by now.
        try (DeviceBuffer<Float32> memory =
                DeviceBuffer.wrap(Device.host(), ElementType.FLOAT32, inner.nativeBuffer.address, inner.length())) {
            float[] numbers = new float[2];
            memory.copyTo(numbers);
            assertEquals(3, numbers[1]);
        }
        inner.nativeBuffer.unpin();
        assertThrows(IllegalStateException.class, inner.nativeBuffer::unpin);
    }

    @Test
    void rejectsPinOfClosedSlice() {
        try (DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 8)) {
            DeviceBuffer<Float32> slice = buffer.slice(2, 4);
            DeviceBuffer<Float32> inner = slice.slice(1, 2);
            slice.close();
            assertThrows(IllegalStateException.class, inner.nativeBuffer::pin);
            assertThrows(IllegalStateException.class, buffer.nativeBuffer::unpin);
            buffer.nativeBuffer.pin();
            buffer.nativeBuffer.unpin();
        }
    }

    @Test
    void streamsAndEventsArePinned() {
        NativeStream stream = NativeStream.create(NativeDevice.HOST, true);
        NativeEvent event = new NativeEvent(NativeDevice.HOST, false);
        stream.checkOpen();
        stream.pin();
        event.pin();
        stream.close();
        event.close();
        assertThrows(IllegalStateException.class, stream::checkOpen);
        assertThrows(IllegalStateException.class, stream::pin);
        assertThrows(IllegalStateException.class, event::pin);
        stream.unpin();
        event.unpin();
        assertThrows(IllegalStateException.class, stream::unpin);
        assertThrows(IllegalStateException.class, event::unpin);
    }

    @Test
    void hostMemoryIsOneDevice() {
        assertSame(Device.host(), Device.host());
    }
}
