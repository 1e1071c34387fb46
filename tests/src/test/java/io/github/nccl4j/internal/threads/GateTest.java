package io.github.nccl4j.internal.threads;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Who is let in, and the count of what was done inside, which goes on whoever comes. */
class GateTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final Gate gate = new Gate(other -> new IllegalStateException("in use by " + other), () -> {});

    private static <T> T inAnotherThread(Callable<T> call) throws Exception {
        return Threads.together(List.of(call), LIMIT).get(0);
    }

    private long operate() {
        Gate.Pass pass = gate.enter();
        long number = pass.next();
        pass.countAndLeave();
        return number;
    }

    @Test
    void countContinuesAcrossThreads() throws Exception {
        assertEquals(0, gate.operations());
        assertEquals(1, operate());
        assertEquals(2, operate());
        assertEquals(3, inAnotherThread(this::operate));
        assertEquals(4, operate());
        assertEquals(4, gate.operations());
    }

    @Test
    void enteringDoesNotCountAnOperation() {
        gate.enter().leave();
        Gate.Pass pass = gate.enter();
        assertEquals(0, gate.operations());
        pass.count();
        pass.count();
        assertTrue(pass.isInside());
        assertEquals(2, gate.operations());
        assertEquals(3, pass.next());
        pass.leave();
        assertFalse(pass.isInside());
        assertEquals(2, gate.operations());
        gate.enterBarred().leave();
        assertEquals(3, operate());
    }

    @Test
    void otherThreadEntersOnlyAfterLeave() throws Exception {
        Gate.Pass pass = gate.enter();
        ExecutionException refused = assertThrows(ExecutionException.class, () -> inAnotherThread(this::operate));
        assertEquals("in use by " + Thread.currentThread(), refused.getCause().getMessage());
        assertTrue(pass.isInside());
        pass.countAndLeave();
        assertEquals(2, inAnotherThread(this::operate));
    }

    @Test
    void operationsOfEvictedPassAreCounted() {
        operate();
        Gate.Pass pass = gate.enter();
        assertSame(pass, gate.bar(() -> new IllegalStateException("barred"), () -> {}));
        assertTrue(pass.isInside());
        assertEquals(1, gate.operations());
        pass.countAndLeave();
        assertEquals(2, gate.operations());
        assertThrows(IllegalStateException.class, this::operate);
        gate.enterBarred().leave();
        assertEquals(2, gate.operations());
        gate.open(() -> {});
        assertEquals(3, operate());
    }

    @Test
    void passThroughBarredGateAllowsOneEntry() {
        operate();
        gate.bar(() -> new IllegalStateException("barred"), () -> {});
        gate.enterBarred().leave();
        assertThrows(IllegalStateException.class, this::operate);
        gate.enterBarred().leave();
        assertThrows(IllegalStateException.class, this::operate);
        gate.open(() -> {});
        assertEquals(2, operate());
    }

    @Test
    void threadsSeeStateAfterBarOrOpen() throws Exception {
        AtomicReference<String> state = new AtomicReference<>("open");
        FutureTask<Long> early = new FutureTask<>(this::operate);
        gate.bar(() -> new IllegalStateException(state.get()), () -> {
            startAndAwait(early);
            state.set("barred");
        });
        ExecutionException refused =
                assertThrows(ExecutionException.class, () -> early.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
        assertEquals("barred", refused.getCause().getMessage());

        FutureTask<Long> late = new FutureTask<>(this::operate);
        gate.open(() -> {
            startAndAwait(late);
            state.set("open");
        });
        assertEquals(1, late.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
    }

    @Test
    void theThreadThatIsInsideIsKnown() throws Exception {
        assertNull(gate.lastHolder());
        assertNull(gate.inside());
        assertFalse(gate.isInside());
        Gate.Pass pass = gate.enter();
        assertSame(pass, gate.inside());
        assertTrue(gate.isInside());
        assertFalse(inAnotherThread(gate::isInside));
        pass.leave();
        assertSame(Thread.currentThread(), gate.lastHolder());
        assertNull(gate.inside());
        assertFalse(gate.isInside());
    }

    @Test
    void aThreadIsStillInsideAfterTheGateIsBarred() throws Exception {
        Gate.Pass pass = gate.enter();
        gate.bar(() -> new IllegalStateException("barred"), () -> {});
        assertSame(pass, gate.inside());
        assertTrue(gate.isInside());
        assertFalse(inAnotherThread(gate::isInside));
        assertSame(pass, gate.bar(() -> new IllegalStateException("barred again"), () -> {}));
        IllegalStateException inUse = assertThrows(IllegalStateException.class, gate::enterBarred);
        assertEquals("in use by " + Thread.currentThread(), inUse.getMessage());
        pass.leave();
        assertNull(gate.inside());
        assertFalse(gate.isInside());
        gate.enterBarred().leave();
        assertSame(Thread.currentThread(), gate.lastHolder());
    }

    /** A thread that ends in an open group never goes out. */
    @Test
    void aThreadThatHasEndedIsNotInside() throws Exception {
        Gate.Pass left = inAnotherThread(gate::enter);
        left.holder().join();
        assertTrue(left.isInside());
        assertNull(gate.inside());
        assertEquals(1, operate());
    }

    @Test
    void preparesThreadThatWasNotLastInside() throws Exception {
        AtomicInteger prepared = new AtomicInteger();
        Gate counting = new Gate(other -> new IllegalStateException(), prepared::incrementAndGet);
        counting.enter().leave();
        assertEquals(1, prepared.get());
        counting.enter().leave();
        assertEquals(1, prepared.get());
        inAnotherThread(() -> {
            counting.enter().leave();
            return null;
        });
        assertEquals(2, prepared.get());
        counting.enterBarred().leave();
        assertEquals(3, prepared.get());
    }

    @Test
    void lastThreadReentersWithSamePass() {
        Gate.Pass pass = gate.enter();
        assertFalse(gate.enterAgain(pass, pass.counted()));
        pass.leave();
        assertTrue(gate.enterAgain(pass, pass.counted()));
        assertTrue(pass.isInside());
        pass.leave();
        assertSame(pass, gate.enter());
        pass.leave();
        // An invalidated pass is refused and leaves no thread inside.
        gate.bar(() -> new IllegalStateException("barred"), () -> {});
        gate.open(() -> {});
        assertFalse(gate.enterAgain(pass, pass.counted()));
        assertFalse(pass.isInside());
    }

    /** Until it is done, or waits for the gate. */
    private static void startAndAwait(FutureTask<Long> operation) {
        Thread thread = new Thread(operation, "who comes");
        thread.start();
        Waiting.until(
                "a thread that waits for the gate",
                () -> operation.isDone() || thread.getState() == Thread.State.BLOCKED);
    }

    @Test
    void gateIsExclusiveAndCountsAllOperations() throws Exception {
        int[] inside = new int[1];
        Callable<Integer> user = () -> {
            int done = 0;
            while (done < 20_000) {
                Gate.Pass pass;
                try {
                    pass = gate.enter();
                } catch (IllegalStateException inUse) {
                    Thread.onSpinWait();
                    continue;
                }
                assertEquals(1, ++inside[0]);
                inside[0]--;
                pass.countAndLeave();
                done++;
            }
            return done;
        };
        Threads.together(List.of(user, user), LIMIT);
        assertEquals(40_000, gate.operations());
    }
}
