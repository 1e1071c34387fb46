package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.fails;
import static io.github.nccl4j.tests.highlevel.RankThreads.STREAM;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.Element.Int8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.SignalWait;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Puts and signals on the host engine. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class OneSidedTest {
    private static final Device HOST = Device.host();

    /** A window of its own for a rank, with the buffer's flag or without. */
    private record Mine(DeviceBuffer<Int32> buffer, Window window) implements AutoCloseable {
        static Mine of(Communicator communicator, long length) {
            DeviceBuffer<Int32> buffer = HOST.allocateForWindow(ElementType.INT32, length);
            buffer.fill(-1);
            return new Mine(buffer, communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC));
        }

        int[] numbers() {
            int[] all = new int[(int) buffer.length()];
            buffer.copyTo(all);
            return all;
        }

        @Override
        public void close() {
            window.close();
            buffer.close();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void elementsGoRoundARing(int size) throws Exception {
        RankThreads.run(size, communicator -> {
            int rank = communicator.rank();
            int next = (rank + 1) % size;
            int previous = (rank + size - 1) % size;
            try (Mine mine = Mine.of(communicator, 2)) {
                mine.buffer().slice(0, 1).fill(rank);
                for (int step = 1; step <= size; step++) {
                    communicator.putSignal(mine.buffer().slice(0, 1), mine.window(), 1, next, STREAM);
                    communicator.waitSignal(previous, STREAM);
                    int[] numbers = mine.numbers();
                    assertEquals((rank - step + size) % size, numbers[1]);
                    mine.buffer().slice(0, 1).copyFrom(mine.buffer().slice(1, 1));
                    // Only now the previous one may write again.
                    communicator.signal(previous, STREAM);
                    communicator.waitSignal(next, STREAM);
                }
                assertEquals(rank, mine.numbers()[0]);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void everyRankPutsToEveryRankInAGroup(boolean blocking) throws Exception {
        int size = 3;
        int part = 1000;
        CommunicatorConfig config =
                CommunicatorConfig.builder().blocking(blocking).build();
        RankThreads.run(size, Communicator.builder().config(config), communicator -> {
            int rank = communicator.rank();
            try (Mine mine = Mine.of(communicator, 2L * size * part)) {
                for (int peer = 0; peer < size; peer++) {
                    mine.buffer().slice((long) peer * part, part).fill(10 * rank + peer);
                }
                try (Group group = Group.open()) {
                    SignalWait[] waits = new SignalWait[size];
                    for (int peer = 0; peer < size; peer++) {
                        communicator.putSignal(
                                mine.buffer().slice((long) peer * part, part),
                                mine.window(),
                                (long) (size + rank) * part,
                                peer,
                                STREAM);
                        waits[peer] = SignalWait.of(peer, 1);
                    }
                    communicator.waitSignal(STREAM, waits);
                    group.launch();
                }
                int[] numbers = mine.numbers();
                for (int peer = 0; peer < size; peer++) {
                    for (int i = 0; i < part; i++) {
                        assertEquals(10 * peer + rank, numbers[(size + peer) * part + i]);
                    }
                }
                communicator.work(STREAM).await();
            }
        });
    }

    @Test
    void oneThreadDrivesAllRanks() {
        List<Communicator> ranks = Communicator.createAll(List.of(HOST, HOST, HOST));
        List<DeviceBuffer<Int32>> buffers = new ArrayList<>();
        List<Window> windows = new ArrayList<>();
        Group.run(() -> {
            for (Communicator communicator : ranks) {
                DeviceBuffer<Int32> buffer = HOST.allocateForWindow(ElementType.INT32, 2);
                buffer.fill(communicator.rank());
                buffers.add(buffer);
                windows.add(communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC));
            }
        });
        Group.run(() -> {
            for (Communicator communicator : ranks) {
                int rank = communicator.rank();
                communicator.putSignal(buffers.get(rank).slice(0, 1), windows.get(rank), 1, (rank + 1) % 3, STREAM);
                communicator.waitSignal((rank + 2) % 3, STREAM);
            }
        });
        for (int rank = 0; rank < 3; rank++) {
            int[] numbers = new int[2];
            buffers.get(rank).copyTo(numbers);
            assertArrayEquals(new int[] {rank, (rank + 2) % 3}, numbers);
        }
        ranks.forEach(Communicator::close);
        buffers.forEach(DeviceBuffer::close);
    }

    @Test
    void signalsAreCountedByRankAndUsedUp() throws Exception {
        RankThreads.run(3, communicator -> {
            if (communicator.rank() > 0) {
                for (int i = 0; i < 5; i++) {
                    communicator.signal(0, STREAM);
                }
                communicator.waitSignal(0, STREAM);
                communicator.signal(0, STREAM);
                return;
            }
            communicator.waitSignal(STREAM, SignalWait.of(1, 2));
            communicator.waitSignal(STREAM, SignalWait.of(2, 5), SignalWait.of(1, 1), SignalWait.of(1, 2));
            // All are used up: the next ones come after this.
            communicator.signal(1, STREAM);
            communicator.signal(2, STREAM);
            communicator.waitSignal(STREAM, SignalWait.of(1, 1), SignalWait.of(2, 1));
            assertEquals(
                    "ncclWaitSignal of 2 signals (operation 5)",
                    communicator.work(STREAM).toString());
        });
    }

    @Test
    void aSignalFollowsTheElementsThatWerePutBefore() throws Exception {
        RankThreads.run(2, communicator -> {
            try (Mine mine = Mine.of(communicator, 1 << 20)) {
                int half = 1 << 19;
                if (communicator.rank() == 0) {
                    mine.buffer().slice(0, half).fill(7);
                    communicator.putSignal(mine.buffer().slice(0, half), mine.window(), half, 1, STREAM);
                    communicator.putSignal(mine.buffer().slice(0, 0), mine.window(), 2 * half, 1, STREAM);
                    communicator.signal(1, STREAM);
                    communicator.waitSignal(1, STREAM);
                } else {
                    communicator.waitSignal(STREAM, SignalWait.of(0, 3));
                    int[] numbers = mine.numbers();
                    assertEquals(-1, numbers[half - 1]);
                    for (int i = half; i < 2 * half; i++) {
                        assertEquals(7, numbers[i]);
                    }
                    communicator.signal(0, STREAM);
                }
            }
        });
    }

    @Test
    void emptyPutAtEndOfWindowOnlySignals() throws Exception {
        RankThreads.run(2, communicator -> {
            int peer = 1 - communicator.rank();
            try (Mine mine = Mine.of(communicator, 1024)) {
                communicator.putSignal(mine.buffer().slice(1024, 0), mine.window(), 1024, peer, STREAM);
                communicator.waitSignal(peer, STREAM);
                assertEquals(-1, mine.numbers()[1023]);
            }
        });
    }

    @Test
    void offsetsAreInElementsOfWhatIsPut() throws Exception {
        RankThreads.run(1, communicator -> {
            try (Mine mine = Mine.of(communicator, 1024)) {
                long address = mine.buffer().address();
                DeviceBuffer<Float64> doubles = DeviceBuffer.wrap(HOST, ElementType.FLOAT64, address, 512);
                DeviceBuffer<Int8> bytes = DeviceBuffer.wrap(HOST, ElementType.INT8, address, 4096);
                doubles.slice(0, 1).fill(1.5);
                communicator.putSignal(doubles.slice(0, 1), mine.window(), 511, 0, STREAM);
                double[] last = new double[1];
                doubles.slice(511, 1).copyTo(last);
                assertEquals(1.5, last[0]);
                fails(
                        IndexOutOfBoundsException.class,
                        () -> communicator.putSignal(doubles.slice(0, 1), mine.window(), 512, 0, STREAM),
                        "512 + 1 > 512");
                bytes.slice(0, 1).fill(3);
                communicator.putSignal(bytes.slice(0, 1), mine.window(), 4095, 0, STREAM);
                assertEquals(3, mine.numbers()[1023] >>> 24);
                communicator.waitSignal(STREAM, SignalWait.of(0, 2));
            }
        });
    }

    @Test
    void theSourceNeedsASymmetricWindowAndTheTargetAnyWindow() throws Exception {
        RankThreads.run(2, communicator -> {
            int peer = 1 - communicator.rank();
            try (Mine mine = Mine.of(communicator, 1024);
                    DeviceBuffer<Int32> other = HOST.allocateForWindow(ElementType.INT32, 1024);
                    Window plain = communicator.registerWindow(other)) {
                mine.buffer().fill(4);
                fails(
                        IllegalArgumentException.class,
                        () -> communicator.putSignal(other, mine.window(), 0, peer, STREAM),
                        "COLL_SYMMETRIC",
                        other.toString());
                communicator.putSignal(mine.buffer(), plain, 0, peer, STREAM);
                communicator.waitSignal(peer, STREAM);
                int[] numbers = new int[1024];
                other.copyTo(numbers);
                assertEquals(4, numbers[1023]);
                // Partly outside.
                DeviceBuffer<Int32> longer = DeviceBuffer.wrap(
                        HOST, ElementType.INT32, mine.buffer().slice(1000, 24).address(), 25);
                fails(
                        IllegalArgumentException.class,
                        () -> communicator.putSignal(longer, plain, 0, peer, STREAM),
                        "in a window");
                // Closed while the other window is open.
                mine.window().close();
                fails(
                        IllegalArgumentException.class,
                        () -> communicator.putSignal(mine.buffer(), plain, 0, peer, STREAM),
                        "in a window");
            }
        });
    }

    @Test
    void rejectsMisuseBeforeTheCall() throws Exception {
        RankThreads.run(2, communicator -> {
            int rank = communicator.rank();
            int peer = 1 - rank;
            try (Mine mine = Mine.of(communicator, 1024);
                    Communicator child = communicator.split(0, rank)) {
                DeviceBuffer<Int32> part = mine.buffer().slice(0, 8);
                Window window = mine.window();
                putFails(IndexOutOfBoundsException.class, communicator, part, window, -1, peer, "offset", "-1");
                putFails(IndexOutOfBoundsException.class, communicator, part, window, 1017, peer, "1017 + 8 > 1024");
                putFails(
                        IndexOutOfBoundsException.class,
                        communicator,
                        part,
                        window,
                        Long.MAX_VALUE,
                        peer,
                        Long.MAX_VALUE + " + 8 > 1024");
                putFails(IllegalArgumentException.class, communicator, part, window, 8, 2, "peer", "2, size 2");
                putFails(IllegalArgumentException.class, communicator, part, window, 8, -1, "peer", "-1, size 2");
                putFails(IllegalArgumentException.class, communicator, part, window, 4, rank, "overlap");
                putFails(
                        IllegalArgumentException.class, child, part, window, 8, peer, "window belongs to communicator");
                fails(NullPointerException.class, () -> communicator.putSignal(part, null, 8, peer, STREAM));
                fails(NullPointerException.class, () -> communicator.putSignal(part, window, 8, peer, null));
                fails(NullPointerException.class, () -> communicator.signal(peer, null));
                fails(IllegalArgumentException.class, () -> communicator.signal(2, STREAM), "2, size 2");
                fails(IllegalArgumentException.class, () -> communicator.waitSignal(2, STREAM), "2, size 2");
                fails(IllegalArgumentException.class, () -> communicator.waitSignal(-1, STREAM), "-1, size 2");
                fails(IllegalArgumentException.class, () -> communicator.waitSignal(STREAM), "at least 1");
                fails(
                        IllegalArgumentException.class,
                        () -> communicator.waitSignal(STREAM, new SignalWait(peer, 1, 3, 0)),
                        "index must be 0",
                        "3");
                fails(
                        IllegalArgumentException.class,
                        () -> communicator.waitSignal(STREAM, new SignalWait(peer, 1, 0, 4)),
                        "context must be 0",
                        "4");
                fails(IllegalArgumentException.class, () -> SignalWait.of(peer, 0), "count must be >= 1: 0");
                fails(IllegalArgumentException.class, () -> SignalWait.of(-2, 1), "peer must be >= 0: -2");
                fails(IllegalArgumentException.class, () -> new SignalWait(0, 1, -1, 0), "index");
                fails(IllegalArgumentException.class, () -> new SignalWait(0, 1, 0, -1), "context");
                CudaStream closed = CudaStream.nonBlocking(HOST);
                closed.close();
                fails(IllegalStateException.class, () -> communicator.signal(peer, closed), "closed");
                window.close();
                putFails(IllegalStateException.class, communicator, part, window, 8, peer, "closed");
                // Nothing of it was done: nobody has a signal.
                communicator.signal(peer, STREAM);
                communicator.waitSignal(peer, STREAM);
                assertEquals(
                        "ncclWaitSignal of 1 signal from rank " + peer + " (operation 2)",
                        communicator.work(STREAM).toString());
            }
        });
    }

    private static <T extends Element> void putFails(
            Class<? extends Exception> type,
            Communicator communicator,
            DeviceBuffer<T> elements,
            Window window,
            long offset,
            int peer,
            String... parts) {
        fails(type, () -> communicator.putSignal(elements, window, offset, peer, STREAM), parts);
        // In a group, too, and nothing of it is kept.
        Group.run(() -> fails(type, () -> communicator.putSignal(elements, window, offset, peer, STREAM), parts));
    }

    @Test
    void discardedGroupPutsNothing() throws Exception {
        RankThreads.run(2, communicator -> {
            int peer = 1 - communicator.rank();
            try (Mine mine = Mine.of(communicator, 1024)) {
                mine.buffer().slice(0, 8).fill(9);
                try (Group group = Group.open()) {
                    communicator.putSignal(mine.buffer().slice(0, 8), mine.window(), 8, peer, STREAM);
                    communicator.signal(peer, STREAM);
                    communicator.waitSignal(STREAM, SignalWait.of(peer, 2));
                    throw new IllegalStateException("before the launch of " + group);
                } catch (IllegalStateException given) {
                    assertTrue(given.getMessage().startsWith("before the launch of "), given::getMessage);
                    assertEquals(-1, mine.numbers()[8]);
                }
                communicator.putSignal(mine.buffer().slice(0, 8), mine.window(), 16, peer, STREAM);
                communicator.waitSignal(peer, STREAM);
                assertEquals(-1, mine.numbers()[8]);
                assertEquals(9, mine.numbers()[16]);
            }
        });
    }

    @Test
    void failureNamesTheOperation() throws Exception {
        RankThreads.run(2, communicator -> {
            int rank = communicator.rank();
            if (rank == 0) {
                communicator.signal(1, STREAM);
                communicator.waitSignal(1, STREAM);
                communicator.abort();
                return;
            }
            communicator.waitSignal(0, STREAM);
            communicator.signal(0, STREAM);
            fails(
                    NcclRemoteException.class,
                    () -> communicator.waitSignal(STREAM, SignalWait.of(0, 3)),
                    "ncclWaitSignal of 3 signals from rank 0 failed at rank 1");
            communicator.abort();
        });
    }

    @Test
    void putsAndSignalsAllocateNothing() throws Exception {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        RankThreads.run(1, communicator -> {
            try (Mine mine = Mine.of(communicator, 1024)) {
                DeviceBuffer<Int32> part = mine.buffer().slice(0, 8);
                long before = 0;
                for (int i = 0; i < 2000; i++) {
                    if (i == 1000) {
                        before = threads.getCurrentThreadAllocatedBytes();
                    }
                    communicator.putSignal(part, mine.window(), 8, 0, STREAM);
                    communicator.signal(0, STREAM);
                }
                long allocated = threads.getCurrentThreadAllocatedBytes() - before;
                // An object for each of them would be 16000 bytes; the JVM itself needs some.
                assertTrue(allocated < 10_000, allocated + " bytes for 1000 puts and 1000 signals");
                communicator.waitSignal(STREAM, SignalWait.of(0, 4000));
            }
        });
    }
}
