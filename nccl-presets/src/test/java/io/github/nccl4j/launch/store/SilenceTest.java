package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The silence of a peer that is counted by checks which may be late. */
class SilenceTest {
    private static final long SECOND = 1_000_000_000;

    /** Checks every second, each late by the given time; returns the counted silence. */
    private static long counted(Silence silence, long start, int checks, long late) {
        long counted = 0;
        long now = start;
        for (int i = 0; i < checks; i++) {
            long due = now + SECOND;
            now = due + late;
            counted = silence.check(due, now);
        }
        return counted;
    }

    /** The times of a JVM may be negative, and may wrap. */
    @ParameterizedTest
    @ValueSource(longs = {0, 1, -3 * SECOND, Long.MAX_VALUE - 2 * SECOND, Long.MIN_VALUE})
    void checksInTimeCountAllOfIt(long start) {
        Silence silence = new Silence();
        silence.end(start);
        assertEquals(5 * SECOND, counted(silence, start, 5, 0));
    }

    /** A little late each time, as in a process that gets a part of a processor; or once by more than any patience. */
    @ParameterizedTest
    @ValueSource(longs = {SECOND / 10, SECOND * 9 / 10, 3600 * SECOND})
    void timeByWhichTheCheckIsLateIsNoSilence(long late) {
        Silence silence = new Silence();
        silence.end(Long.MAX_VALUE - 2 * SECOND);
        assertEquals(3 * SECOND, counted(silence, Long.MAX_VALUE - 2 * SECOND, 3, late));
    }

    /** What was received in a pause is read before the check, which is late. */
    @Test
    void whatIsHeardAfterTheCheckWasDueBeginsTheSilenceAnew() {
        Silence silence = new Silence();
        silence.end(0);
        silence.end(5 * SECOND - 1);
        assertEquals(0, silence.check(SECOND, 5 * SECOND));
        assertEquals(SECOND, silence.check(6 * SECOND, 6 * SECOND));
    }

    @Test
    void aPauseDoesNotHideTheSilenceAfterIt() {
        Silence silence = new Silence();
        silence.end(0);
        assertEquals(SECOND, silence.check(SECOND, 60 * SECOND));
        assertEquals(3 * SECOND, counted(silence, 60 * SECOND, 2, 0));
        assertTrue(silence.check(63 * SECOND, 63 * SECOND) > 3 * SECOND);
    }
}
