package io.github.nccl4j.ras;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.testing.ServedLines;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Lines of a RAS service, the time that a report may take, and the releases whose service may crash. */
@Timeout(60)
class RasServiceTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    /** Answers nothing to the question itself. */
    private static ServedLines service() throws IOException {
        return new ServedLines(line -> switch (line) {
            case "CLIENT PROTOCOL 2" -> "SERVER PROTOCOL 2\n";
            case "TIMEOUT 1" -> "OK\n";
            default -> "";
        });
    }

    /** NCCL gathers twice, each time for the timeout and 5 s more. */
    @Test
    void limitIsTwiceTheTimeOfAGathering() throws IOException {
        try (ServedLines service = service();
                RasClient client = RasClient.connect(service.address(), LONG)) {
            assertEquals(Duration.ofSeconds(12), client.reportLimit(1));
            assertEquals(Duration.ofSeconds(20), client.reportLimit(5));
            client.setGatherSeconds(2);
            assertEquals(Duration.ofSeconds(6), client.reportLimit(1));
        }
    }

    /** As NCCL would need it, but without the 5 s for which it waits. */
    @Test
    void reportHasADeadline() throws IOException {
        try (ServedLines service = service();
                RasClient client = RasClient.connect(service.address(), LONG)) {
            client.setGatherSeconds(0);
            long begin = System.nanoTime();
            assertEquals(
                    "the RAS service at " + service.address() + " failed: it did not respond in time",
                    assertThrows(RasException.class, () -> client.status(RasFormat.TEXT, Duration.ofSeconds(1)))
                            .getMessage());
            assertEquals(2, Duration.ofNanos(System.nanoTime() - begin).toSeconds(), 1);
        }
    }

    /* The releases whose service may crash. */

    @Test
    void defectsHaveFirstAndLastReleases() {
        assertEquals(List.of(), RasDefect.of(22402));
        assertEquals(List.of(RasDefect.UNFINISHED_COMMUNICATOR, RasDefect.MISSING_RANKS), RasDefect.of(22403));
        assertEquals(List.of(RasDefect.UNFINISHED_COMMUNICATOR, RasDefect.MISSING_RANKS), RasDefect.of(22702));
        assertEquals(List.of(RasDefect.MISSING_RANKS, RasDefect.UNWRITTEN_STATUS), RasDefect.of(22703));
        assertEquals(
                List.of(RasDefect.MISSING_RANKS, RasDefect.CHANGED_PROCESSES, RasDefect.UNWRITTEN_STATUS),
                RasDefect.of(22707));
        assertEquals(List.of(RasDefect.UNWRITTEN_STATUS), RasDefect.of(23007));
        assertEquals(List.of(), RasDefect.of(23008));
        assertEquals("", RasDefect.warning(23008));
        assertEquals(
                "NCCL 2.27.1 may crash the job if it is asked while a communicator is being created (nccl#1669, nccl#1718),"
                        + " or if ranks are missing (nccl#1762)",
                RasDefect.warning(22701));
    }

    /* The lines of a service. */

    private static String failure(String greeting) throws IOException {
        try (ServedLines service = new ServedLines(line -> greeting)) {
            return assertThrows(RasException.class, () -> RasClient.connect(service.address(), LONG))
                    .getMessage()
                    .replace(service.address(), "ADDRESS");
        }
    }

    @Test
    void otherServicesAreRefused() throws IOException {
        String refusal = "no RAS service responds at ADDRESS: another service listens there";
        assertEquals(refusal, failure("HTTP/1.1 400 Bad Request\n"));
        assertEquals(refusal, failure("x".repeat((1 << 20) + 1)));
        assertEquals(
                "no RAS service responds at ADDRESS: it has closed the connection",
                failure("SERVER PROTOCOL 2" + ServedLines.END));
    }

    private static RasClient client(ServedLines service) {
        RasClient client = RasClient.connect(service.address(), LONG);
        assertEquals(service.address(), "127.0.0.1:" + client.remoteAddress().getPort());
        assertEquals("client of the RAS service at " + service.address(), client.toString());
        return client;
    }

    private static ServedLines service(String status) throws IOException {
        return new ServedLines(line -> switch (line) {
            case "CLIENT PROTOCOL 2" -> "server protocol 2 \r\n";
            case "TIMEOUT 1", "TIMEOUT 3600", "SET FORMAT json" -> "ok\n";
            default -> status;
        });
    }

    @Test
    void reportIsAllThatComesBeforeTheEnd() throws IOException {
        String report = "línea\n".repeat(10_000);
        try (ServedLines service = service(report + ServedLines.END)) {
            for (RasFormat format : RasFormat.values()) {
                try (RasClient client = client(service)) {
                    assertEquals(
                            report, client.status(format, Duration.ofSeconds(format == RasFormat.TEXT ? 1 : 3600)));
                }
            }
            assertEquals(
                    List.of(
                            "CLIENT PROTOCOL 2",
                            "TIMEOUT 1",
                            "STATUS",
                            "CLIENT PROTOCOL 2",
                            "TIMEOUT 3600",
                            "VERBOSE STATUS",
                            "CLIENT PROTOCOL 2",
                            "TIMEOUT 3600",
                            "SET FORMAT json",
                            "STATUS"),
                    service.received);
        }
    }

    @Test
    void addressAndHelpHaveDefaults() {
        String set = System.getenv().getOrDefault("NCCL_RAS_ADDR", "").strip();
        assertEquals(set.isEmpty() ? "localhost:28028" : set, RasClient.defaultAddress());
        assertEquals("NCCL4J-0015", new RasException("message", null).helpId());
    }

    @Test
    void timeoutHasALimit() throws IOException {
        try (ServedLines service = service("");
                RasClient client = client(service)) {
            assertEquals(
                    "timeout must be from 1 s to 3600 s: 3601 s",
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> client.status(RasFormat.TEXT, Duration.ofSeconds(3601)))
                            .getMessage());
        }
    }

    @Test
    void unknownCommandNamesTheReleaseThatHasIt() throws IOException {
        try (ServedLines service = service("ERROR: Unknown command\n");
                RasClient client = client(service)) {
            assertEquals(
                    "the RAS service at " + service.address() + " failed: its response to MONITOR lifecycle,trace was "
                            + "ERROR: Unknown command (SET FORMAT needs NCCL 2.28.7, MONITOR needs 2.29)",
                    assertThrows(
                                    RasException.class,
                                    () -> client.monitor(
                                            RasFormat.TEXT, Set.of(RasEvents.TRACE, RasEvents.LIFECYCLE), line -> {}))
                            .getMessage());
        }
    }

    @Test
    void eventsEndWithTheConnection() throws IOException {
        try (ServedLines service = service("OK\none \ntwo\n" + ServedLines.END);
                RasClient client = client(service)) {
            List<String> lines = new ArrayList<>();
            client.monitor(RasFormat.JSON, Set.of(RasEvents.LIFECYCLE), lines::add);
            assertEquals(List.of("one", "two"), lines);
            assertEquals("SET FORMAT json", service.received.get(1));
        }
    }

    /** Only the request of events has a deadline. */
    @Test
    @SuppressWarnings("try") // Closing early ends the events.
    void eventsMayBeFarApart() throws IOException {
        try (ServedLines service = service("OK\none\n");
                RasClient client = client(service)) {
            client.setGatherSeconds(2);
            CompletableFuture<Void> monitoring = CompletableFuture.runAsync(
                    () -> client.monitor(RasFormat.TEXT, Set.of(RasEvents.LIFECYCLE), line -> {}));
            assertThrows(TimeoutException.class, () -> monitoring.get(3, TimeUnit.SECONDS));
            client.close();
            monitoring.join();
        }
    }

    @Test
    void emptyReportIsAFailure() throws IOException {
        try (ServedLines service = service(ServedLines.END);
                RasClient client = client(service)) {
            assertEquals(
                    "the RAS service at " + service.address()
                            + " failed: it has closed the connection without a report",
                    assertThrows(RasException.class, () -> client.status(RasFormat.TEXT, Duration.ofSeconds(1)))
                            .getMessage());
        }
    }
}
