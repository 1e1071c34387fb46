package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.communicator.CommunicatorState;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.submission.Batch;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What a group launches, and how long it keeps memory, which it need not pin once more for each operation. */
class BatchTest {
    private static final Device HOST = Device.host();
    private static final CudaStream STREAM = CudaStream.defaultOf(HOST);
    private static final int LENGTH = 100;

    private static Communicator alone() {
        return Communicator.create(UniqueId.create(), 0, 1);
    }

    private static DeviceBuffer<Int32> numbers() {
        return numbers(0);
    }

    private static DeviceBuffer<Int32> numbers(int first) {
        DeviceBuffer<Int32> buffer = HOST.allocate(ElementType.INT32, LENGTH);
        buffer.copyFrom(from(first));
        return buffer;
    }

    /** Numbers that differ, of which only the first may be 0. */
    private static int[] from(int first) {
        return IntStream.range(first, first + LENGTH).toArray();
    }

    private static int[] content(DeviceBuffer<Int32> buffer) {
        int[] content = new int[Math.toIntExact(buffer.length())];
        buffer.copyTo(content);
        return content;
    }

    @Test
    void slicesOfOneBufferPinItOnce() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> send = numbers(7);
                DeviceBuffer<Int32> recv = numbers();
                Group group = Group.open()) {
            for (int i = 0; i < LENGTH; i++) {
                communicator.allReduce(send.slice(i, 1), recv.slice(i, 1), ReduceOp.SUM, STREAM);
            }
            assertEquals(1, send.nativeBuffer.pins());
            assertEquals(1, recv.nativeBuffer.pins());
            group.launch();
            assertEquals(0, send.nativeBuffer.pins());
            assertEquals(0, recv.nativeBuffer.pins());
            assertArrayEquals(from(7), content(recv));
        }
    }

    /** On host memory a call reads the buffers itself, and holds them that long. */
    @Test
    void withoutAGroupBuffersArePinnedDuringTheCall() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> send = numbers(7);
                DeviceBuffer<Int32> recv = numbers()) {
            List<Integer> during = new ArrayList<>();
            CallInterceptor interceptor = new CallInterceptor() {
                @Override
                public void after(Call call, int result, long nanoseconds) {
                    if (call.function().equals("ncclAllReduce")) {
                        during.addAll(List.of(send.nativeBuffer.pins(), recv.nativeBuffer.pins()));
                    }
                }
            };
            CallInterceptor.Installed installed = NcclLibrary.intercept(interceptor);
            try {
                communicator.allReduce(send, recv, ReduceOp.SUM, STREAM);
            } finally {
                installed.close();
            }
            assertEquals(List.of(1, 1), during);
            assertEquals(0, send.nativeBuffer.pins());
            assertEquals(0, recv.nativeBuffer.pins());
            assertArrayEquals(from(7), content(recv));
        }
    }

    @Test
    void manyBuffersArePinnedUntilTheLaunch() {
        DeviceBuffer<?>[] buffers = new DeviceBuffer<?>[LENGTH];
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> recv = numbers();
                Group group = Group.open()) {
            for (int i = 0; i < LENGTH; i++) {
                DeviceBuffer<Int32> buffer = numbers(7 + i);
                communicator.allReduce(buffer.slice(0, 1), recv.slice(i, 1), ReduceOp.SUM, STREAM);
                // Does not affect the memory before the launch.
                buffer.close();
                buffers[i] = buffer;
                assertEquals(1, buffer.nativeBuffer.pins());
            }
            group.launch();
            for (DeviceBuffer<?> buffer : buffers) {
                assertEquals(0, buffer.nativeBuffer.pins());
            }
            assertArrayEquals(from(7), content(recv));
        }
    }

    @Test
    void pinsAgainAfterDiscardedGroup() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> outer = numbers(1);
                DeviceBuffer<Int32> inner = numbers();
                Group group = Group.open()) {
            communicator.allReduce(outer, ReduceOp.SUM, STREAM);
            Group givenUp = Group.open();
            communicator.allReduce(inner, ReduceOp.SUM, STREAM);
            communicator.allReduce(outer, ReduceOp.MAX, STREAM);
            assertEquals(1, inner.nativeBuffer.pins());
            givenUp.close();
            assertEquals(0, inner.nativeBuffer.pins());
            assertEquals(1, outer.nativeBuffer.pins());
            communicator.allReduce(outer, inner, ReduceOp.SUM, STREAM);
            assertEquals(1, inner.nativeBuffer.pins());
            group.launch();
            assertEquals(0, inner.nativeBuffer.pins());
            assertEquals(0, outer.nativeBuffer.pins());
            assertArrayEquals(from(1), content(inner));
        }
    }

    /** Neither its operations nor those of a group in it that is still open. */
    @Test
    void discardedInnerGroupIsNotLaunched() {
        int[] untouched = from(0);
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> send = numbers(7);
                DeviceBuffer<Int32> before = numbers();
                DeviceBuffer<Int32> given = numbers();
                DeviceBuffer<Int32> inside = numbers();
                DeviceBuffer<Int32> after = numbers();
                Group group = Group.open()) {
            communicator.allReduce(send, before, ReduceOp.SUM, STREAM);
            Group givenUp = Group.open();
            communicator.allReduce(send, given, ReduceOp.SUM, STREAM);
            Group.open();
            communicator.allReduce(send, inside, ReduceOp.SUM, STREAM);
            givenUp.close();
            communicator.allReduce(send, after, ReduceOp.SUM, STREAM);
            group.launch();
            assertArrayEquals(from(7), content(before));
            assertArrayEquals(untouched, content(given));
            assertArrayEquals(untouched, content(inside));
            assertArrayEquals(from(7), content(after));
        }
    }

    @Test
    void groupsOfTwoThreadsPinSharedBuffersSeparately() throws Exception {
        try (Communicator mine = alone();
                Communicator theirs = alone();
                DeviceBuffer<Int32> buffer = numbers(7);
                Group group = Group.open()) {
            mine.allReduce(buffer.slice(0, 1), buffer.slice(3, 1), ReduceOp.SUM, STREAM);
            Callable<Void> other = () -> {
                try (Group others = Group.open()) {
                    theirs.allReduce(buffer.slice(1, 1), buffer.slice(4, 1), ReduceOp.SUM, STREAM);
                    assertEquals(2, buffer.nativeBuffer.pins());
                    others.launch();
                }
                return null;
            };
            Threads.together(List.of(other), Duration.ofSeconds(30));
            assertEquals(1, buffer.nativeBuffer.pins());
            assertArrayEquals(new int[] {7, 8, 9, 10, 8, 12}, Arrays.copyOf(content(buffer), 6));
            mine.allReduce(buffer.slice(2, 1), buffer.slice(5, 1), ReduceOp.SUM, STREAM);
            group.launch();
            assertEquals(0, buffer.nativeBuffer.pins());
            assertArrayEquals(new int[] {7, 8, 9, 7, 8, 9}, Arrays.copyOf(content(buffer), 6));
        }
    }

    /** Records what a group does with it, and may fail. */
    private static final class Recorded implements Deferred {
        private final String name;
        private final List<String> events;
        private final boolean fails;

        Recorded(String name, List<String> events, boolean fails) {
            this.name = name;
            this.events = events;
            this.fails = fails;
        }

        @Override
        public boolean waitsForOtherRanks() {
            return false;
        }

        @Override
        public int call() {
            events.add(name + " called");
            return nccl.ncclSuccess;
        }

        @Override
        public void completed() {
            events.add(name + " completed");
            if (fails) {
                throw new IllegalArgumentException(name);
            }
        }

        @Override
        public void discarded() {
            events.add(name + " discarded");
        }
    }

    @Test
    void aFailureOfOneCompletionDoesNotStopTheOthers() {
        List<String> events = new ArrayList<>();
        try (Communicator communicator = alone()) {
            IllegalArgumentException failure = assertThrows(
                    IllegalArgumentException.class,
                    () -> Group.run(() -> {
                        for (Recorded call : List.of(
                                new Recorded("first", events, false),
                                new Recorded("second", events, true),
                                new Recorded("third", events, true),
                                new Recorded("fourth", events, false))) {
                            Batch.call(communicator.core(), call, EnumSet.of(CommunicatorState.OPEN));
                        }
                    }));
            assertEquals("second", failure.getMessage());
            assertEquals("third", failure.getSuppressed()[0].getMessage());
        }
        assertEquals(
                List.of(
                        "first called",
                        "second called",
                        "third called",
                        "fourth called",
                        "first completed",
                        "second completed",
                        "third completed",
                        "fourth completed"),
                events);
    }
}
