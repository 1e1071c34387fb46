package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.StreamTimeoutException;
import io.github.nccl4j.highlevel.Work;
import io.github.nccl4j.testing.Waiting;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Streams of host memory are queues: what is in them runs in their order, while the program goes on. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostStreamsTest {
    private static final Duration SOON = Duration.ofSeconds(120);
    private static final Device HOST = Device.host();

    private static DeviceBuffer<Float32> numbers(long length, float value) {
        DeviceBuffer<Float32> buffer = HOST.allocate(ElementType.FLOAT32, length);
        buffer.fill(value);
        return buffer;
    }

    private static float first(DeviceBuffer<Float32> buffer) {
        float[] value = new float[1];
        buffer.copyTo(FloatBuffer.wrap(value), 0);
        return value[0];
    }

    private static float first(DeviceBuffer<Float32> buffer, CudaStream stream) {
        stream.synchronize(SOON);
        return first(buffer);
    }

    @Test
    void aCallReturnsBeforeTheOtherRankHasMadeIts() throws Exception {
        CountDownLatch enqueued = new CountDownLatch(1);
        RankThreads.run(2, communicator -> {
            try (CudaStream stream = CudaStream.nonBlocking(HOST);
                    DeviceBuffer<Float32> buffer = numbers(1, 1 + communicator.rank())) {
                if (communicator.rank() == 1) {
                    // Legal on GPUs: nothing on the host waits for the send to be done.
                    enqueued.await();
                    communicator.recv(buffer, 0, stream);
                } else {
                    communicator.send(buffer, 1, stream);
                    assertFalse(stream.isDone());
                    assertThrows(StreamTimeoutException.class, () -> stream.synchronize(Duration.ofMillis(1)));
                    Work work = communicator.work(stream);
                    assertFalse(work.isDone());
                    enqueued.countDown();
                    work.await(SOON);
                }
                assertEquals(1, first(buffer, stream));
            }
        });
    }

    @Test
    void aWaitForALateRankAfterWaitsForNothing() throws Exception {
        CountDownLatch enqueued = new CountDownLatch(1);
        RankThreads.run(2, communicator -> {
            try (CudaStream stream = CudaStream.nonBlocking(HOST);
                    DeviceBuffer<Float32> buffer = numbers(1, 1 + communicator.rank())) {
                stream.synchronize();
                if (communicator.rank() == 0) {
                    enqueued.await();
                    // Otherwise the send could overtake a wait that does not wait.
                    Thread.sleep(50);
                    communicator.send(buffer, 1, stream);
                } else {
                    communicator.recv(buffer, 0, stream);
                    enqueued.countDown();
                }
                stream.synchronize();
                assertEquals(1, first(buffer));
                stream.synchronize();
            }
        });
    }

    @Test
    void closingAStreamDoesNotWaitForAThreadThatDoes() throws Exception {
        CountDownLatch closed = new CountDownLatch(1);
        RankThreads.run(2, communicator -> {
            CudaStream stream = CudaStream.nonBlocking(HOST);
            try (stream;
                    DeviceBuffer<Float32> buffer = numbers(1, 1 + communicator.rank())) {
                if (communicator.rank() == 0) {
                    closed.await();
                    communicator.send(buffer, 1, stream);
                    stream.synchronize();
                    return;
                }
                communicator.recv(buffer, 0, stream);
                FutureTask<Void> waiting = new FutureTask<>(stream::synchronize, null);
                Thread thread = new Thread(waiting, "waits for a stream");
                thread.start();
                // Not in another native method, such as that which loads a class: the thread would find the stream
                // closed.
                Waiting.until("a thread inside the engine", () -> Arrays.stream(thread.getStackTrace())
                        .anyMatch(call -> call.isNativeMethod()
                                && call.getClassName().equals("io.github.nccl4j.library.HostEngine")));
                stream.close();
                assertThrows(IllegalStateException.class, stream::synchronize);
                // The wait looks at the stream every 5 ms.
                Thread.sleep(20);
                closed.countDown();
                waiting.get(SOON.toSeconds(), TimeUnit.SECONDS);
                assertEquals(1, first(buffer));
            }
        });
    }

    @Test
    void eventsOrderStreamsAndTellTheTime() throws Exception {
        CountDownLatch started = new CountDownLatch(2);
        RankThreads.run(2, communicator -> {
            try (CudaStream first = CudaStream.nonBlocking(HOST);
                    CudaStream second = CudaStream.nonBlocking(HOST);
                    CudaEvent start = CudaEvent.timing(HOST);
                    CudaEvent summed = CudaEvent.timing(HOST);
                    DeviceBuffer<Float32> buffer = numbers(1000, 1);
                    DeviceBuffer<Float32> copy = numbers(1000, 0)) {
                start.record(first);
                started.countDown();
                if (communicator.rank() == 1) {
                    started.await();
                    Thread.sleep(100);
                }
                communicator.allReduce(buffer, ReduceOp.SUM, first);
                summed.record(first);
                second.waitFor(summed);
                copy.copyFromAsync(buffer, second);
                assertEquals(2, first(copy, second));
                assertTrue(summed.isDone());
                Duration time = summed.elapsedSince(start);
                assertTrue(time.toMillis() >= (communicator.rank() == 1 ? 0 : 50), () -> time.toString());
            }
        });
    }

    @Test
    void oneCommunicatorInTwoStreamsRunsInTheOrderOfTheCalls() throws Exception {
        RankThreads.run(2, communicator -> {
            try (CudaStream first = CudaStream.nonBlocking(HOST);
                    CudaStream second = CudaStream.nonBlocking(HOST);
                    DeviceBuffer<Float32> sum = numbers(1, 1);
                    DeviceBuffer<Float32> product = numbers(5000, 3)) {
                for (int round = 0; round < 20; round++) {
                    communicator.allReduce(sum, ReduceOp.SUM, round % 2 == 0 ? first : second);
                    communicator.allReduce(product, ReduceOp.MAX, round % 2 == 0 ? second : first);
                }
                first.synchronize(SOON);
                assertEquals(1 << 20, first(sum, second));
                assertEquals(3, first(product, second));
            }
        });
    }

    @Test
    void defaultStreamSeesWorkItWaitsFor() throws Exception {
        RankThreads.run(2, communicator -> {
            try (DeviceBuffer<Float32> buffer = numbers(1, 1)) {
                for (int round = 0; round < 20; round++) {
                    communicator.waitForDefaultStream();
                    communicator.allReduce(buffer, ReduceOp.SUM, communicator.stream());
                    communicator.letDefaultStreamWait();
                    // A copy in the default stream.
                    assertEquals(2 << round, first(buffer));
                }
            }
        });
    }

    @Test
    void buffersAndCommunicatorsMayBeClosedWithWorkPending() throws Exception {
        CountDownLatch closed = new CountDownLatch(1);
        RankThreads.run(2, communicator -> {
            CudaStream stream = CudaStream.nonBlocking(HOST);
            DeviceBuffer<Float32> buffer = numbers(1 << 20, 1);
            DeviceBuffer<Float32> window = HOST.allocateForWindow(ElementType.FLOAT32, 1 << 20);
            if (communicator.rank() == 1) {
                closed.await();
            }
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            window.copyFromAsync(buffer, stream);
            buffer.close();
            window.close();
            stream.close();
            closed.countDown();
            // Closing the communicator, which follows, waits for the other rank.
        });
    }

    @Test
    void abortEndsQueuedWork() throws Exception {
        CountDownLatch aborted = new CountDownLatch(1);
        RankThreads.run(2, communicator -> {
            if (communicator.rank() == 1) {
                aborted.await();
                // Closing would fail if it had heard of the other rank's abort by then.
                communicator.abort();
                return;
            }
            try (CudaStream stream = CudaStream.nonBlocking(HOST);
                    DeviceBuffer<Float32> buffer = numbers(10, 1)) {
                communicator.send(buffer, 1, stream);
                communicator.send(buffer, 1, stream);
                Work work = communicator.work(stream);
                communicator.abort();
                aborted.countDown();
                assertThrows(IllegalStateException.class, () -> stream.synchronize(SOON));
                assertThrows(IllegalStateException.class, work::isDone);
                // The stream is usable again.
                stream.synchronize(SOON);
            }
        });
    }

    @Test
    void aFailureIsSeenByWorkAndByTheStream() throws Exception {
        CountDownLatch enqueued = new CountDownLatch(2);
        RankThreads.run(3, communicator -> {
            if (communicator.rank() == 1) {
                enqueued.await();
                communicator.abort();
                return;
            }
            try (CudaStream stream = CudaStream.nonBlocking(HOST);
                    CudaEvent event = CudaEvent.create(HOST);
                    DeviceBuffer<Float32> buffer = numbers(10, 1)) {
                communicator.allReduce(buffer, ReduceOp.SUM, stream);
                event.record(stream);
                enqueued.countDown();
                Work work = communicator.work(stream);
                NcclRemoteException lost = assertThrows(NcclRemoteException.class, () -> work.await(SOON));
                assertTrue(lost.getMessage().contains("rank 1"), lost.getMessage());
                assertThrows(NcclRemoteException.class, () -> stream.synchronize(SOON));
                assertThrows(NcclRemoteException.class, () -> event.synchronize(SOON));
                try (Communicator rest = communicator.shrink(List.of(1), ShrinkFlag.ABORT)) {
                    // The failure was answered: the stream goes on.
                    buffer.fill(2);
                    rest.allReduce(buffer, ReduceOp.SUM, stream);
                    rest.work(stream).await(SOON);
                    assertEquals(4, first(buffer, stream));
                }
            }
        });
    }

    @Test
    void aCommunicatorThatDoesNotBlockRunsInStreamsToo() throws Exception {
        CommunicatorConfig config = CommunicatorConfig.builder().blocking(false).build();
        RankThreads.run(2, Communicator.builder().config(config), communicator -> {
            try (CudaStream stream = CudaStream.nonBlocking(HOST);
                    DeviceBuffer<Float32> buffer = numbers(100, 1)) {
                for (int call = 0; call < 3; call++) {
                    communicator.allReduce(buffer, ReduceOp.SUM, stream);
                }
                communicator.work(stream).await(SOON);
                communicator.allReduce(buffer, ReduceOp.SUM, RankThreads.STREAM);
                assertEquals(16, first(buffer, stream));
            }
        });
    }

    /** The calling thread makes the copy itself. */
    @Test
    void aCopyInTheDefaultStreamWaitsForTheWorkBeforeIt() throws Exception {
        CudaStream standard = CudaStream.defaultOf(HOST);
        CountDownLatch enqueued = new CountDownLatch(1);
        List<Communicator> ranks = Communicator.createAll(List.of(HOST, HOST));
        try (CudaStream stream = CudaStream.nonBlocking(HOST);
                CudaEvent summed = CudaEvent.create(HOST);
                DeviceBuffer<Float32> buffer = numbers(1, 1);
                DeviceBuffer<Float32> other = numbers(1, 1);
                DeviceBuffer<Float32> copy = numbers(1, 0)) {
            FutureTask<Float> copied = new FutureTask<>(() -> {
                ranks.get(0).allReduce(buffer, ReduceOp.SUM, stream);
                summed.record(stream);
                standard.waitFor(summed);
                enqueued.countDown();
                copy.copyFromAsync(buffer, standard);
                return first(copy);
            });
            Thread copying = new Thread(copied, "copying");
            copying.start();
            enqueued.await();
            Waiting.until("a thread that waits for the other rank", () -> {
                StackTraceElement[] stack = copying.getStackTrace();
                return stack.length == 0 || stack[0].isNativeMethod();
            });
            ranks.get(1).allReduce(other, ReduceOp.SUM, standard);
            assertEquals(2, copied.get());
        } finally {
            ranks.forEach(Communicator::abort);
        }
    }

    @Test
    void directBuffersLiveUntilTheirCopyIsDone() throws Exception {
        RankThreads.run(2, communicator -> {
            try (CudaStream stream = CudaStream.nonBlocking(HOST);
                    DeviceBuffer<Float32> buffer = numbers(1000, 1)) {
                FloatBuffer target = ByteBuffer.allocateDirect(4000)
                        .order(ByteOrder.nativeOrder())
                        .asFloatBuffer();
                communicator.allReduce(buffer, ReduceOp.SUM, stream);
                buffer.copyToAsync(target, stream);
                assertEquals(1000, target.position());
                stream.synchronize(SOON);
                assertEquals(2, target.get(999));
            }
        });
    }
}
