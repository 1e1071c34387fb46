package io.github.nccl4j.internal.communicator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.ServedLines;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a timeout's message contains of RAS, against a service of this test. */
@Timeout(60)
class RasQueryTest {
    private static final int SAFE = 23203;
    private static final int RISKY = 22803;

    private static ServedLines service(String report) throws IOException {
        return new ServedLines(line -> switch (line) {
            case "CLIENT PROTOCOL 2" -> "SERVER PROTOCOL 2\n";
            case "TIMEOUT 1" -> "OK\n";
            case "STATUS" -> report + ServedLines.END;
            default -> "ERROR: Unknown command " + line + "\n";
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "false", " False "})
    void nobodyIsAskedByDefault(String setting) throws IOException {
        try (ServedLines service = service("report")) {
            assertEquals("", RasQuery.report(setting, SAFE, service.address()));
            assertEquals(List.of(), service.received);
        }
    }

    @Test
    void reportIsPartOfTheMessage() throws IOException {
        try (ServedLines service = service("\nJob summary\nall is well\n\n")) {
            assertEquals("RAS reports:\nJob summary\nall is well", RasQuery.report("TRUE", SAFE, service.address()));
        }
    }

    @Test
    void releaseThatMayCrashIsAskedByForceAlone() throws IOException {
        try (ServedLines service = service("report")) {
            assertEquals(
                    "RAS was not asked: NCCL 2.28.3 may crash the job if it is asked if ranks are missing (nccl#1762), or"
                            + " while a communicator is being created (nccl#2346). nccl4j.ras=force asks nevertheless.",
                    RasQuery.report("true", RISKY, service.address()));
            assertEquals(List.of(), service.received);
            assertEquals("RAS reports:\nreport", RasQuery.report("force", RISKY, service.address()));
        }
    }

    @Test
    void longReportsAreCut() throws IOException {
        try (ServedLines service = service("x".repeat(20_000))) {
            String report = RasQuery.report("true", SAFE, service.address());
            assertTrue(
                    report.endsWith("x\n... and 3616 more characters"), () -> report.substring(report.length() - 60));
            assertEquals(
                    "RAS reports:\n".length() + 16_384 + "\n... and 3616 more characters".length(), report.length());
        }
    }

    @Test
    void failuresAreTextAndNoException() throws IOException {
        try (ServedLines other = new ServedLines(line -> "HTTP/1.1 400\n" + ServedLines.END)) {
            assertEquals(
                    "RAS could not be asked: no RAS service responds at " + other.address()
                            + ": another service listens there",
                    RasQuery.report("true", SAFE, other.address()));
        }
        assertEquals(
                "RAS could not be asked: the address of a RAS service must end with a port from 1 to 65535: localhost:0",
                RasQuery.report("true", SAFE, "localhost:0"));
        assertEquals("nccl4j.ras must be true, false or force: on", RasQuery.report("on", SAFE, "localhost:0"));
    }
}
