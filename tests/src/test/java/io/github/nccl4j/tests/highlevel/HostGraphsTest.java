package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Work of host memory that is captured once and launched often. */
@Timeout(value = 2, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostGraphsTest {
    private static final Device HOST = Device.host();
    private static final int RANKS = 2;

    private final List<Communicator> ranks = new ArrayList<>();
    private final List<CudaStream> streams = new ArrayList<>();
    private final List<DeviceBuffer<Int32>> buffers = new ArrayList<>();

    @AfterEach
    void end() {
        ranks.forEach(Communicator::abort);
        streams.forEach(CudaStream::close);
        buffers.forEach(DeviceBuffer::close);
    }

    private void create(Duration deadline) {
        ranks.addAll(Communicator.builder().deadline(deadline).createAll(Collections.nCopies(RANKS, HOST)));
    }

    private CudaStream stream() {
        CudaStream stream = CudaStream.nonBlocking(HOST);
        streams.add(stream);
        return stream;
    }

    private DeviceBuffer<Int32> numbers(int... numbers) {
        DeviceBuffer<Int32> buffer = HOST.copyOf(numbers);
        buffers.add(buffer);
        return buffer;
    }

    private CudaGraph sum(int rank, DeviceBuffer<Int32> buffer, CudaStream stream) {
        return CudaGraph.capture(stream, () -> ranks.get(rank).allReduce(buffer, ReduceOp.SUM, stream));
    }

    @Test
    void aCapturedCollectiveRunsAtEachLaunch() {
        create(Duration.ofMinutes(1));
        List<DeviceBuffer<Int32>> own = List.of(numbers(1), numbers(2));
        List<CudaStream> both = List.of(stream(), stream());
        List<CudaGraph> graphs = List.of(sum(0, own.get(0), both.get(0)), sum(1, own.get(1), both.get(1)));
        both.forEach(CudaStream::synchronize);
        assertArrayEquals(new int[] {1}, own.get(0).toIntArray());
        for (int sum : new int[] {3, 6, 12}) {
            for (int rank = 0; rank < RANKS; rank++) {
                graphs.get(rank).launch(both.get(rank));
            }
            both.forEach(CudaStream::synchronize);
            assertArrayEquals(new int[] {sum}, own.get(0).toIntArray());
            assertArrayEquals(new int[] {sum}, own.get(1).toIntArray());
        }
        // A communicator that is closed closes the graphs of its operations.
        assertTrue(graphs.get(0).isOpen());
        ranks.get(0).close();
        assertFalse(graphs.get(0).isOpen());
        assertTrue(graphs.get(1).isOpen());
        graphs.get(1).close();
    }

    /** As a call that is not captured. */
    @Test
    void aLaunchThatARankDoesNotJoinEndsAtTheDeadline() {
        create(Duration.ofMillis(300));
        CudaStream stream = stream();
        try (CudaGraph graph = sum(0, numbers(1), stream)) {
            graph.launch(stream);
            NcclTimeoutException late = assertThrows(NcclTimeoutException.class, stream::synchronize);
            assertTrue(late.getMessage().contains("0.3 s"), late.getMessage());
            ranks.forEach(Communicator::abort);
        }
    }

    @Test
    void whatACaptureThatFailedHasRecordedIsDiscarded() throws IOException {
        CudaStream stream = stream();
        DeviceBuffer<Int32> source = numbers(7);
        DeviceBuffer<Int32> target = numbers(0);
        IOException problem = new IOException();
        assertSame(
                problem,
                assertThrows(
                        IOException.class,
                        () -> CudaGraph.capture(stream, () -> {
                            target.copyFromAsync(source, stream);
                            throw problem;
                        })));
        stream.synchronize();
        assertArrayEquals(new int[] {0}, target.toIntArray());
        target.copyFromAsync(source, stream);
        stream.synchronize();
        assertArrayEquals(new int[] {7}, target.toIntArray());
        // Nothing of the failed capture is in the next one.
        target.fill(0);
        try (CudaGraph graph = CudaGraph.capture(stream, () -> {})) {
            graph.launch(stream);
            stream.synchronize();
        }
        assertArrayEquals(new int[] {0}, target.toIntArray());
    }

    @Test
    void aRefusedCallMakesTheCaptureFail() {
        CudaStream stream = stream();
        List<String> refusals = new ArrayList<>();
        IllegalStateException failure = assertThrows(
                IllegalStateException.class,
                () -> CudaGraph.capture(
                        stream,
                        () -> refusals.add(assertThrows(IllegalStateException.class, stream::synchronize)
                                .getMessage())));
        assertEquals(1, refusals.size());
        assertTrue(refusals.get(0).startsWith("a thread that captures must not make "), refusals.get(0));
        assertEquals("the capture failed: " + refusals.get(0), failure.getMessage());
        stream.synchronize();
    }

    @Test
    void aStreamIsCapturedOnceAtATime() {
        CudaStream stream = stream();
        IllegalStateException twice = assertThrows(
                IllegalStateException.class,
                () -> CudaGraph.capture(stream, () -> CudaGraph.capture(stream, () -> {})));
        assertTrue(twice.getMessage().endsWith(" is being captured already"), twice.getMessage());
        try (CudaGraph graph = CudaGraph.capture(stream, () -> {})) {
            assertTrue(graph.isOpen());
        }
    }

    @Test
    void aGraphKeepsTheBuffersAndGraphsThatItUses() {
        CudaStream stream = stream();
        CudaStream outerStream = stream();
        DeviceBuffer<Int32> source = numbers(7);
        DeviceBuffer<Int32> target = numbers(0);
        CudaGraph inner = CudaGraph.capture(stream, () -> target.copyFromAsync(source, stream));
        CudaGraph outer = CudaGraph.capture(outerStream, () -> inner.launch(outerStream));
        source.close();
        inner.close();
        assertThrows(IllegalStateException.class, () -> inner.launch(stream));
        outer.launch(outerStream);
        outerStream.synchronize();
        assertArrayEquals(new int[] {7}, target.toIntArray());
        outer.close();
        assertThrows(IllegalStateException.class, () -> outer.launch(outerStream));
    }

    /** The launch goes on after the close of its graph. */
    @Test
    void aGraphMayBeClosedWhileItRuns() {
        create(Duration.ofMinutes(1));
        List<DeviceBuffer<Int32>> own = List.of(numbers(1), numbers(2));
        List<CudaStream> both = List.of(stream(), stream());
        CudaGraph first = sum(0, own.get(0), both.get(0));
        first.launch(both.get(0));
        first.close();
        assertFalse(both.get(0).isDone());
        ranks.get(1).allReduce(own.get(1), ReduceOp.SUM, both.get(1));
        both.forEach(CudaStream::synchronize);
        assertArrayEquals(new int[] {3}, own.get(0).toIntArray());
    }
}
