package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests of {@link TimerQueue}, whose time wraps meanwhile. */
class TimerQueueTest {
    private final TestTime time = new TestTime();
    private final TimerQueue timers = time.timers();
    private final List<String> ran = new ArrayList<>();

    private TimerQueue.Timer after(long nanos, String name) {
        return timers.schedule(timers.now() + nanos, () -> ran.add(name));
    }

    @Test
    void runsActionsInOrderOfTheirTimes() {
        after(3, "third");
        after(1, "first");
        after(2, "second");
        assertEquals(1, timers.nanosLeft());
        time.advance(2);
        assertEquals(List.of("first", "second"), ran);
        assertEquals(1, timers.nanosLeft());
        time.advance(1);
        assertEquals(List.of("first", "second", "third"), ran);
        assertTrue(timers.isEmpty());
    }

    @Test
    void runsActionsOfOneTimeInOrderOfTheirCreation() {
        for (int i = 0; i < 9; i++) {
            after(5, "" + i);
        }
        time.advance(4);
        assertEquals(List.of(), ran);
        assertFalse(timers.isEmpty());
        time.advance(1);
        assertEquals("012345678", String.join("", ran));
    }

    @Test
    void doesNotRunCanceledAction() {
        TimerQueue.Timer canceled = after(1, "canceled");
        TimerQueue.Timer other = after(1, "other");
        timers.cancel(canceled);
        timers.cancel(null);
        time.advance(1);
        timers.cancel(other);
        assertEquals(List.of("other"), ran);
    }

    @Test
    void actionThatFailsStaysDue() {
        List<Error> failures = new ArrayList<>(List.of(new OutOfMemoryError("a failure of a test")));
        timers.schedule(timers.now(), () -> {
            if (!failures.isEmpty()) {
                throw failures.remove(0);
            }
            ran.add("again");
        });
        after(0, "next");
        assertThrows(OutOfMemoryError.class, () -> time.advance(0));
        time.advance(0);
        assertEquals(List.of("again", "next"), ran);
        assertTrue(timers.isEmpty());
    }

    @Test
    void runsOverdueActionOnce() {
        after(-4, "overdue");
        assertEquals(-4, timers.nanosLeft());
        time.advance(0);
        time.advance(1);
        assertEquals(List.of("overdue"), ran);
    }
}
