package io.github.nccl4j.internal.communicator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class FailuresTest {
    /** The first report needs nothing of the native communicator. */
    private final Failures failures = new Failures(null);

    private final List<String> reports = new ArrayList<>();

    @Test
    void anErrorIsReportedOnce() {
        assertTrue(failures.isUnreported());
        failures.reportOnce(() -> {
            assertFalse(failures.isUnreported(), "a check during the report would report the error again");
            failures.reportOnce(() -> reports.add("during the first"));
            reports.add("first");
        });
        assertFalse(failures.isUnreported());
        failures.reportOnce(() -> reports.add("second"));
        assertEquals(List.of("first"), reports);
    }

    @Test
    void aReportThatThrowsIsMadeAgain() {
        Error noMemory = new OutOfMemoryError("no memory for the report");
        assertSame(
                noMemory,
                assertThrows(
                        OutOfMemoryError.class,
                        () -> failures.reportOnce(() -> {
                            throw noMemory;
                        })));
        assertTrue(failures.isUnreported());
        failures.reportOnce(() -> reports.add("second"));
        failures.reportOnce(() -> reports.add("third"));
        assertEquals(List.of("second"), reports);
        assertFalse(failures.isUnreported());
    }

    @Test
    void aThreadWaitsFromTheBeginToTheEndOfItsWait() {
        assertFalse(failures.hasWaiters());
        failures.beginWait();
        failures.beginWait();
        failures.endWait();
        assertTrue(failures.hasWaiters());
        failures.endWait();
        assertFalse(failures.hasWaiters());
    }

    @Test
    void aLossIsKnownOnceTheProgramWasTold() {
        assertFalse(failures.isLossKnown());
        RuntimeException thrown = new IllegalStateException();
        assertSame(thrown, failures.told(thrown));
        assertTrue(failures.isLossKnown());
        Failures asked = new Failures(null);
        asked.setTold();
        assertTrue(asked.isLossKnown());
    }
}
