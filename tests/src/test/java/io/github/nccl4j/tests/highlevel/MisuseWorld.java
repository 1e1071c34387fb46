package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tools.support.Checks;
import io.github.nccl4j.tools.support.Threads;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;

/**
 * World in which a misuse is tried: two ranks in this thread, with the objects that they need. On the host engine, or
 * on the stub library that counts its calls with two fake CUDA devices.
 */
final class MisuseWorld implements AutoCloseable {
    static final int LENGTH = 8;
    /** Where the stub library counts its calls; null with the host engine. */
    private static final LongBuffer CALLS = calls();

    final boolean onHost = NcclLibrary.get().engine() == Engine.HOST;
    final Device device = onHost ? Device.host() : Device.cuda(0);
    final Device otherDevice = onHost ? Device.host() : Device.cuda(1);
    final Communicator first;
    final Communicator second;
    final CudaStream stream = CudaStream.nonBlocking(device);
    final CudaStream otherStream = CudaStream.nonBlocking(otherDevice);
    final DeviceBuffer<Float32> send = floats(device);
    final DeviceBuffer<Float32> recv = floats(device);
    final DeviceBuffer<Float32> otherSend = floats(otherDevice);
    final DeviceBuffer<Float32> otherRecv = floats(otherDevice);

    private final Checks checks = new Checks();
    private final Deque<AutoCloseable> later = new ArrayDeque<>();

    MisuseWorld() {
        List<Communicator> both = Communicator.createAll(List.of(device, otherDevice));
        first = both.get(0);
        second = both.get(1);
    }

    private static LongBuffer calls() {
        String file = System.getProperty("stub.calls");
        if (file == null) {
            return null;
        }
        try (FileChannel channel = FileChannel.open(Path.of(file), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(FileChannel.MapMode.READ_WRITE, 0, Long.BYTES)
                    .order(ByteOrder.nativeOrder())
                    .asLongBuffer();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static DeviceBuffer<Float32> floats(Device device) {
        return device.allocate(ElementType.FLOAT32, LENGTH);
    }

    /** How many functions of the library were called; always 0 where nobody counts. */
    private static long nativeCalls() {
        if (CALLS == null) {
            return 0;
        }
        awaitFreeing();
        return CALLS.get(0);
    }

    /** A communicator whose ranks don't close together is freed in the background. */
    private static void awaitFreeing() {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().equals("nccl4j end")) {
                try {
                    thread.join();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }
        }
    }

    /** Something that is closed at the end, the newest first. */
    <C extends AutoCloseable> C later(C resource) {
        later.push(resource);
        return resource;
    }

    /** The call is refused with an exception of this very class and a message of these parts, before the library knows. */
    <E extends Throwable> E refuses(Class<E> type, Checks.Code code, String... parts) {
        E thrown = refusesSilently(type, code, parts);
        checks.isTrue(thrown.getMessage() != null && !thrown.getMessage().isBlank(), "no message: " + thrown);
        return thrown;
    }

    /** As {@link #refuses}, with an exception of the JDK that says all by its name. */
    <E extends Throwable> E refusesSilently(Class<E> type, Checks.Code code, String... parts) {
        long before = nativeCalls();
        E thrown = checks.fails(type, code, parts);
        checks.equal(before, nativeCalls(), "native calls before " + thrown);
        return thrown;
    }

    void proveRefusal() {
        checks.isTrue(checks.passed() > 0, "nothing was tried");
    }

    /** Both ranks work, their results are right, and they can be closed. */
    void proveUsable() {
        checks.isTrue(!Group.isOpenInThisThread(), "a group was left open");
        send.fill(1.5);
        otherSend.fill(2.0);
        long before = nativeCalls();
        Group.run(() -> {
            first.allReduce(send, recv, ReduceOp.SUM, stream);
            second.allReduce(otherSend, otherRecv, ReduceOp.SUM, otherStream);
        });
        if (!onHost) {
            checks.equal(before + 4, nativeCalls(), "native calls of a group of two operations");
        }
        first.work(stream).await();
        second.work(otherStream).await();
        if (onHost) {
            float[] expected = {3.5f, 3.5f, 3.5f, 3.5f, 3.5f, 3.5f, 3.5f, 3.5f};
            float[] found = new float[LENGTH];
            recv.copyTo(found);
            checks.equal(expected, found, "sum at rank 0");
            otherRecv.copyTo(found);
            checks.equal(expected, found, "sum at rank 1");
        }
        onBoth(Communicator::close);
        checks.equal(Communicator.State.CLOSED, first.state(), "state of rank 0");
        checks.equal(Communicator.State.CLOSED, second.state(), "state of rank 1");
    }

    /** What is collective and allowed in no group. */
    void onBoth(Consumer<Communicator> call) {
        CompletableFuture<Void> there = CompletableFuture.runAsync(() -> call.accept(second), Threads.EACH);
        call.accept(first);
        there.join();
    }

    /** Floats at the first rank. */
    DeviceBuffer<Float32> floats(long length) {
        return later(device.allocate(ElementType.FLOAT32, length));
    }

    DeviceBuffer<Float32> closedFloats(long length) {
        DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, length);
        buffer.close();
        return buffer;
    }

    CudaStream closedStream() {
        CudaStream closed = CudaStream.nonBlocking(device);
        closed.close();
        return closed;
    }

    /** What the compiler can't see: code with raw types, or a cast. */
    @SuppressWarnings("unchecked")
    static <T extends Element> DeviceBuffer<T> disguised(DeviceBuffer<?> buffer) {
        return (DeviceBuffer<T>) buffer;
    }

    /** Runs something to its end in a thread of that name. */
    static void inThread(String name, Runnable code) {
        FutureTask<Void> task = new FutureTask<>(code, null);
        Thread thread = new Thread(task, name);
        thread.start();
        try {
            // Waits for the end, after which no thread uses its resources.
            thread.join();
            task.get();
        } catch (InterruptedException | ExecutionException e) {
            throw new AssertionError(e);
        }
    }

    /** Within a group that is closed without a launch. */
    static void inGroupGivenUp(Checks.Code code) throws Exception {
        Group group = Group.open();
        try {
            code.run();
        } finally {
            group.close();
        }
    }

    /** The first rank takes part in an open group of a thread "other" while the code runs. */
    void whileOtherThreadIsInside(Checks.Code code) throws Exception {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        Thread other = new Thread(
                () -> {
                    Group group = Group.open();
                    try {
                        first.send(send, 1, stream);
                        entered.countDown();
                        done.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    } finally {
                        group.close();
                    }
                },
                "other");
        other.start();
        entered.await();
        try {
            code.run();
        } finally {
            done.countDown();
            other.join();
        }
    }

    @Override
    public void close() {
        // Nothing is done where they are closed; else what failed or was to end may not be waited for.
        first.abort();
        second.abort();
        later.addAll(List.of(otherRecv, otherSend, recv, send, otherStream, stream));
        for (AutoCloseable one : later) {
            try {
                one.close();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }
    }
}
