package io.github.nccl4j.internal.diagnostics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Times in the messages of the flight recorder. */
class FlightRecordTimesTest {
    @Test
    void timesInMessagesAreSecondsWithOneDigit() {
        assertEquals("1.2 s", FlightRecord.seconds(1299));
        assertEquals("0.0 s", FlightRecord.seconds(99));
        assertEquals("0.0 s", FlightRecord.seconds(-5000));
        assertEquals("75.0 s", FlightRecord.seconds(75_000));
    }
}
