package io.github.nccl4j.internal.failure;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.Waiting;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class BlockingCallTest {
    private final AtomicInteger ended = new AtomicInteger();

    @AfterEach
    void clearInterrupt() {
        Thread.interrupted();
    }

    /** Each action waits for all the others, and until the caller waits, and ends with its problem. */
    private List<Runnable> actions(Throwable... problems) {
        Thread caller = Thread.currentThread();
        CountDownLatch running = new CountDownLatch(problems.length);
        List<Runnable> actions = new ArrayList<>();
        for (Throwable problem : problems) {
            actions.add(() -> {
                running.countDown();
                Waiting.until("all actions running", () -> running.getCount() == 0);
                Waiting.until("the caller waits", () -> caller.getState() == Thread.State.WAITING);
                ended.incrementAndGet();
                if (problem instanceof RuntimeException exception) {
                    throw exception;
                } else if (problem instanceof Error error) {
                    throw error;
                }
            });
        }
        return actions;
    }

    @Test
    void actionsRunTogetherAndEndBeforeTheirCaller() {
        BlockingCall.runAll("test", actions(null, null, null));
        assertEquals(3, ended.get());
        assertFalse(Thread.currentThread().isInterrupted());
        BlockingCall.runAll("test", List.of());
    }

    @Test
    void theFirstExceptionIsThrownWithTheOthers() {
        RuntimeException second = new IllegalStateException("second");
        RuntimeException third = new IllegalArgumentException("third");
        RuntimeException thrown = assertThrows(
                RuntimeException.class, () -> BlockingCall.runAll("test", actions(null, second, third, second)));
        assertSame(second, thrown);
        assertArrayEquals(new Throwable[] {third}, thrown.getSuppressed());
        assertEquals(4, ended.get());
    }

    @Test
    void anErrorPrecedesExceptions() {
        Error error = new AssertionError("second");
        assertSame(
                error,
                assertThrows(
                        Error.class,
                        () -> BlockingCall.runAll("test", actions(new IllegalStateException("first"), error, null))));
        assertEquals(3, ended.get());
    }

    @Test
    void anInterruptDoesNotEndTheWait() {
        Thread.currentThread().interrupt();
        BlockingCall.runAll("test", actions(null, null));
        assertTrue(Thread.interrupted());
        assertEquals(2, ended.get());
    }
}
