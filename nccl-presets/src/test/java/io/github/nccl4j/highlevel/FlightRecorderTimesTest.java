package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Times in the messages of the flight recorder. */
class FlightRecorderTimesTest {
    @Test
    void timesInMessagesAreSecondsWithOneDigit() {
        assertEquals("1.2 s", FlightRecorder.seconds(1299));
        assertEquals("0.0 s", FlightRecorder.seconds(99));
        assertEquals("0.0 s", FlightRecorder.seconds(-5000));
        assertEquals("75.0 s", FlightRecorder.seconds(75_000));
    }
}
