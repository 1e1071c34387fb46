package io.github.nccl4j.internal.threads;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The thread of a loop: when it starts, checks, and ends. */
@Timeout(60)
class CheckLoopTest {
    private final BlockingQueue<List<String>> checks = new LinkedBlockingQueue<>();
    private final BlockingQueue<Thread> threads = new LinkedBlockingQueue<>();
    private volatile long pause;
    private volatile boolean over;

    /** Records each check of any object; objects whose names begin with "done" need no further check. */
    private long check(List<String> all) {
        if (over) {
            all.clear();
        } else if (!all.isEmpty()) {
            checks.add(List.copyOf(all));
            threads.add(Thread.currentThread());
        }
        all.removeIf(one -> one.startsWith("done"));
        return pause;
    }

    private final CheckLoop<String> loop = new CheckLoop<>("check loop", this::check);

    /** Lets the thread end, which else would check as long as the JVM lives. */
    @AfterEach
    void end() {
        over = true;
        pause = TimeUnit.MILLISECONDS.toNanos(10);
        loop.add("last");
    }

    @Test
    void checksUntilNoneIsLeft() throws InterruptedException {
        pause = TimeUnit.MILLISECONDS.toNanos(1);
        loop.add("stays");
        assertEquals(List.of("stays"), checks.take());
        Thread thread = threads.take();
        assertTrue(thread.isDaemon());
        assertEquals("check loop", thread.getName());
        loop.add("done at once");
        List<String> next = checks.take();
        while (next.equals(List.of("stays"))) {
            next = checks.take();
        }
        assertEquals(List.of("stays", "done at once"), next);
        assertEquals(List.of("stays"), checks.take());
        threads.forEach(other -> assertSame(thread, other));
    }

    @Test
    void threadEndsWithoutObjectsAndStartsAgain() throws InterruptedException {
        pause = TimeUnit.MILLISECONDS.toNanos(10);
        long start = System.nanoTime();
        loop.add("done 1");
        Thread first = threads.take();
        first.join();
        // The next object within a second finds the thread.
        assertTrue(System.nanoTime() - start > TimeUnit.SECONDS.toNanos(1));
        loop.add("done 2");
        Thread second = threads.take();
        assertNotSame(first, second);
        second.join();
        assertEquals(List.of(List.of("done 1"), List.of("done 2")), List.copyOf(checks));
    }

    @Test
    void newObjectEndsAPause() throws InterruptedException {
        pause = TimeUnit.HOURS.toNanos(1);
        loop.add("stays");
        assertEquals(List.of("stays"), checks.take());
        loop.add("done");
        assertEquals(List.of("stays", "done"), checks.take());
    }

    @Test
    void wakingEndsAPause() throws InterruptedException {
        pause = TimeUnit.HOURS.toNanos(1);
        loop.add("stays");
        assertEquals(List.of("stays"), checks.take());
        Thread thread = threads.take();
        Waiting.until("a pause", () -> thread.getState() == Thread.State.TIMED_WAITING);
        assertEquals(List.of(), List.copyOf(checks), "the thread did not pause");
        loop.wake();
        assertEquals(List.of("stays"), checks.take());
    }

    /** A bug, a lack of memory or of stack, and a logger that fails, too. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatACheckThrowsDoesNotEndTheThread(boolean loggerFails) throws InterruptedException {
        Deque<Throwable> failures = new ConcurrentLinkedDeque<>(List.of(
                new IllegalStateException("a failure of a test"),
                new AssertionError("a failure of a test"),
                new OutOfMemoryError("a failure of a test"),
                new StackOverflowError("a failure of a test")));
        CheckLoop<String> failing = new CheckLoop<>("failing loop", all -> {
            Throwable failure = failures.poll();
            if (failure instanceof Error error) {
                throw error;
            }
            if (failure instanceof RuntimeException exception) {
                throw exception;
            }
            return check(all);
        });
        try (TestLog log = new TestLog()) {
            Handler handler = new FailingHandler();
            if (loggerFails) {
                Logger.getLogger("io.github.nccl4j").addHandler(handler);
            }
            try {
                failing.add("done");
                assertEquals(List.of("done"), checks.take());
            } finally {
                Logger.getLogger("io.github.nccl4j").removeHandler(handler);
            }
            // The first failure only.
            assertEquals(List.of("SEVERE: failing loop continues after a failure"), log.lines());
        }
        assertEquals("failing loop", threads.take().getName());
    }

    private static final class FailingHandler extends Handler {
        @Override
        public void publish(LogRecord entry) {
            throw new AssertionError("a failure of a logger");
        }

        @Override
        public void flush() {
            // Nothing is kept.
        }

        @Override
        public void close() {
            // Nothing is open.
        }
    }

    @Test
    void threadsOfAFactoryAreDaemons() {
        Thread thread = DaemonThreads.factory("of a pool").newThread(() -> {});
        assertTrue(thread.isDaemon());
        assertEquals("of a pool", thread.getName());
    }
}
