package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.cuda.PendingOperations;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;

/** Waits for streams with operations of a communicator: they obey it as those for its work do. */
@Timeout(value = 2, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StreamWaitTest {
    private static final Device HOST = Device.host();
    private static final Duration SHORT = Duration.ofMillis(50);
    private static final Duration LONG = Duration.ofMinutes(1);
    private static final String OPERATION = "ncclAllReduce of 2 int32 (operation 1)";

    private final List<AutoCloseable> closed = new ArrayList<>();

    private List<Communicator> ranks;
    private Communicator first;
    private CudaStream stream;
    private DeviceBuffer<Int32> numbers;
    private DeviceBuffer<Int32> others;

    /** Two ranks of this process. The first one calls an operation that the second one has not called. */
    private void begin(Duration deadline, FailurePolicy policy) {
        ranks = Communicator.builder()
                .deadline(deadline)
                .watchdog(false)
                .onFailure(policy)
                .createAll(List.of(HOST, HOST));
        first = ranks.get(0);
        stream = keep(CudaStream.nonBlocking(HOST));
        numbers = keep(HOST.allocate(ElementType.INT32, 2));
        numbers.fill(1);
        others = keep(HOST.allocate(ElementType.INT32, 2));
        others.fill(2);
        first.allReduce(numbers, ReduceOp.SUM, stream);
    }

    private void begin(Duration deadline) {
        begin(deadline, FailurePolicy.THROW);
    }

    private <T extends AutoCloseable> T keep(T resource) {
        closed.add(resource);
        return resource;
    }

    @AfterEach
    void end() throws Exception {
        ranks.forEach(Communicator::abort);
        for (AutoCloseable resource : closed) {
            resource.close();
        }
    }

    private void join() {
        Communicator second = ranks.get(1);
        second.allReduce(others, ReduceOp.SUM, second.stream());
    }

    private void assertSum(Wait wait) {
        stream.synchronize();
        // A fill or a copy of the wait wrote the same numbers.
        assertSum();
        assertTrue(stream.nativeStream.pending().isEmpty(), wait.name);
    }

    private void assertSum() {
        int[] sum = new int[2];
        numbers.copyTo(sum);
        assertArrayEquals(new int[] {3, 3}, sum);
    }

    private CudaEvent recorded() {
        CudaEvent event = keep(CudaEvent.create(HOST));
        event.record(stream);
        return event;
    }

    private CudaStream behind(CudaEvent event) {
        CudaStream other = keep(CudaStream.nonBlocking(HOST));
        other.waitFor(event);
        return other;
    }

    private void letDefaultStreamWait() {
        CudaStream.defaultOf(HOST).waitFor(recorded());
    }

    /** A kind of wait; the first action prepares it. */
    private record Wait(String name, Consumer<StreamWaitTest> prepared, Consumer<StreamWaitTest> body) {}

    private CudaEvent event;
    private CudaStream other;

    private static final List<Wait> WAITS = List.of(
            new Wait("stream", test -> {}, test -> test.stream.synchronize()),
            new Wait("event", test -> test.event = test.recorded(), test -> test.event.synchronize()),
            new Wait(
                    "stream behind an event",
                    test -> test.other = test.behind(test.recorded()),
                    test -> test.other.synchronize()),
            new Wait(
                    "event behind an event",
                    test -> {
                        test.event = keepOf(test);
                        test.event.record(test.behind(test.recorded()));
                    },
                    test -> test.event.synchronize()),
            new Wait("default stream", test -> test.letDefaultStreamWait(), test -> CudaStream.defaultOf(HOST)
                    .synchronize()),
            new Wait("copy to", test -> test.letDefaultStreamWait(), test -> test.numbers.copyTo(new int[2])),
            new Wait("copy from", test -> test.letDefaultStreamWait(), test -> test.numbers.copyFrom(new int[] {3, 3})),
            new Wait("fill", test -> test.letDefaultStreamWait(), test -> test.numbers.fill(3)));

    private static CudaEvent keepOf(StreamWaitTest test) {
        return test.keep(CudaEvent.create(HOST));
    }

    private Stream<DynamicTest> eachWait(Duration deadline, Consumer<Wait> body) {
        return WAITS.stream()
                .map(wait -> DynamicTest.dynamicTest(wait.name, () -> {
                    begin(deadline);
                    try {
                        wait.prepared.accept(this);
                        body.accept(wait);
                    } finally {
                        end();
                        closed.clear();
                    }
                }));
    }

    @TestFactory
    Stream<DynamicTest> theDeadlineEndsEachWait() {
        return eachWait(SHORT, wait -> {
            NcclTimeoutException late = assertThrows(NcclTimeoutException.class, () -> wait.body.accept(this));
            assertTrue(late.getMessage().startsWith("Timed out after 0.05 s in " + OPERATION), late.getMessage());
            assertSame(late, first.failure().orElseThrow());
            // The operation continues.
            assertEquals(Communicator.State.OPEN, first.state());
            join();
            first.work(stream).await(LONG);
            wait.body.accept(this);
            assertSum(wait);
        });
    }

    @TestFactory
    Stream<DynamicTest> anInterruptEndsEachWaitAndTheCommunicator() {
        return eachWait(LONG, wait -> {
            Thread.currentThread().interrupt();
            assertThrows(NcclInterruptedException.class, () -> wait.body.accept(this));
            assertTrue(Thread.interrupted());
            assertEquals(Communicator.State.ABORTED, first.state());
        });
    }

    /** The thread waits in the host engine, runs the operation itself and hands it over. */
    @TestFactory
    Stream<DynamicTest> aLateRankIsAwaited() {
        return eachWait(LONG, wait -> {
            CompletableFuture<Void> joined = CompletableFuture.runAsync(
                    () -> {
                        Waiting.until(
                                "a thread that waits",
                                () -> first.core().failures().hasWaiters());
                        pause();
                        join();
                    },
                    Threads.EACH);
            wait.body.accept(this);
            joined.join();
            assertSum(wait);
            assertTrue(first.core().operationLog().isDone(1), "the operation is not known to be done");
        });
    }

    /** Longer than the host engine waits between two checks. */
    private static void pause() {
        try {
            Thread.sleep(20);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Nothing that was aborted counts as done, also for threads that begin to wait afterwards. */
    @TestFactory
    Stream<DynamicTest> theFirstWaitAfterAnAbortThrows() {
        return eachWait(LONG, wait -> {
            first.abort();
            IllegalStateException lost = assertThrows(IllegalStateException.class, () -> wait.body.accept(this));
            assertEquals(first.core() + " ended before " + OPERATION + " was done", lost.getMessage());
            // The program knows it now, and uses the stream again.
            wait.body.accept(this);
        });
    }

    @Test
    void queriesDoNotReportStoppedOperationsAsDone() {
        begin(LONG);
        CudaEvent mark = recorded();
        assertFalse(stream.isDone());
        assertFalse(mark.isDone());
        first.revoke(RevokeFlag.DEFAULT);
        assertStopped(mark::isDone);
        assertTrue(stream.isDone());
        begin(LONG);
        first.revoke(RevokeFlag.DEFAULT);
        assertStopped(stream::isDone);
    }

    /** Asks until the revoke has ended the operation, which the query must not call done. */
    private static void assertStopped(BooleanSupplier isDone) {
        assertThrows(IllegalStateException.class, () -> {
            Waiting.until("end of the operation", () -> isDone.getAsBoolean());
        });
    }

    /** The policy aborts the communicator while another thread waits. */
    @Test
    void anAbortEndsTheWaitsOfOtherThreads() {
        begin(LONG);
        CompletableFuture<RuntimeException> waiting = CompletableFuture.supplyAsync(
                () -> assertThrows(RuntimeException.class, stream::synchronize), Threads.EACH);
        Waiting.until("a thread that waits", () -> first.core().failures().hasWaiters());
        first.abort();
        assertInstanceOf(IllegalStateException.class, waiting.join());
    }

    @Test
    void aPolicyThatAbortsLeavesTheException() {
        begin(SHORT, FailurePolicy.ABORT);
        assertThrows(NcclTimeoutException.class, stream::synchronize);
        assertEquals(Communicator.State.ABORTED, first.state());
    }

    /** The program knows of the failure, and needs no second exception. */
    @Test
    void aFailureIsThrownOnce() {
        begin(SHORT);
        assertThrows(NcclTimeoutException.class, () -> first.work(stream).await());
        first.revoke(RevokeFlag.DEFAULT);
        stream.synchronize();
    }

    @Test
    void operationsThatWereDoneBeforeAnAbortStayDone() {
        begin(LONG);
        CudaEvent mark = recorded();
        join();
        Waiting.until("the event", () -> mark.nativeEvent.isDoneWhileCapturing());
        assertFalse(first.core().operationLog().isDone(1));
        first.abort();
        stream.synchronize();
        assertSum();
    }

    /** Nobody can wait for a stream that was closed. */
    @Test
    void closedStreamsAreForgotten() throws Exception {
        begin(LONG);
        stream.close();
        CudaStream closedLater = keep(CudaStream.nonBlocking(HOST));
        first.allReduce(numbers, ReduceOp.SUM, closedLater);
        first.abort();
        assertTrue(PendingOperations.areInherited());
        closedLater.close();
        assertFalse(PendingOperations.areInherited());
    }

    @Test
    void aTimeoutReplacesTheDeadline() {
        begin(SHORT);
        assertThrows(StreamTimeoutException.class, () -> stream.synchronize(Duration.ZERO));
        CudaEvent mark = recorded();
        assertThrows(StreamTimeoutException.class, () -> mark.synchronize(Duration.ofMillis(100)));
        assertThrows(StreamTimeoutException.class, () -> stream.synchronize(Duration.ofMillis(100)));
        assertTrue(first.failure().isEmpty());
        first.abort();
        assertThrows(IllegalStateException.class, () -> stream.synchronize(LONG));
    }

    @Test
    void theDefaultStreamWaitsForThatOfTheCommunicator() {
        begin(SHORT);
        first.allReduce(numbers, ReduceOp.SUM, first.stream());
        first.letDefaultStreamWait();
        assertThrows(NcclTimeoutException.class, () -> numbers.copyTo(new int[2]));
        join();
        join();
        CudaStream.defaultOf(HOST).synchronize();
    }

    /** Streams without operations of a communicator have no deadline. */
    @Test
    void otherStreamsWaitAsLongAsItTakes() {
        begin(SHORT);
        CudaStream copies = keep(CudaStream.nonBlocking(HOST));
        assertTrue(copies.nativeStream.pending().isEmpty());
        assertFalse(stream.nativeStream.pending().isEmpty());
        assertTrue(CudaStream.defaultOf(HOST).nativeStream.pending().isEmpty());
    }
}
