package io.github.nccl4j.tools.ras;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.ras.RasClient;
import io.github.nccl4j.ras.RasEvents;
import io.github.nccl4j.ras.RasException;
import io.github.nccl4j.ras.RasFormat;
import io.github.nccl4j.testing.ServedLines;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The client of the RAS service against a service of this test. */
@Timeout(60)
class RasClientTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private static ServedLines service() throws IOException {
        return new ServedLines(line -> switch (line) {
            case "CLIENT PROTOCOL 2" -> "SERVER PROTOCOL 2\n";
            // White space at the end of a line does not matter.
            case "MONITOR lifecycle" -> "OK \r\none \r\n";
            case "TIMEOUT 1" -> "OK\n";
            case "MONITOR trace" -> "ERROR\n";
            default -> "";
        });
    }

    @Test
    void serviceThatDoesNotRespondIsNamed() throws IOException {
        try (ServedLines silent = new ServedLines(line -> "")) {
            assertEquals(
                    "no RAS service responds at " + silent.address() + ": it did not respond in time",
                    assertThrows(RasException.class, () -> RasClient.connect(silent.address(), Duration.ofMillis(100)))
                            .getMessage());
        }
    }

    /** The processes of a machine share the port; the kernel may choose one that is stopped. */
    @Test
    void stoppedProcessIsPassedOver() throws IOException {
        try (ServedLines service = service();
                ServerSocketChannel stopped = ServerSocketChannel.open()) {
            stopped.setOption(StandardSocketOptions.SO_REUSEPORT, true);
            stopped.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), service.port()));
            stopped.configureBlocking(false);
            // Each attempt goes to either of the two.
            Waiting.until("an attempt at the stopped process", () -> {
                RasClient.connect(service.address(), LONG).close();
                try (SocketChannel attempt = stopped.accept()) {
                    return attempt != null;
                }
            });
        }
    }

    @Test
    @SuppressWarnings("try") // Closing early is what is tested.
    void closeEndsMonitor() throws Exception {
        try (ServedLines service = service();
                RasClient client = RasClient.connect(service.address(), LONG)) {
            CountDownLatch first = new CountDownLatch(1);
            List<String> lines = new ArrayList<>();
            CompletableFuture<Void> monitoring = CompletableFuture.runAsync(
                    () -> client.monitor(RasFormat.TEXT, Set.of(RasEvents.LIFECYCLE), line -> {
                        lines.add(line);
                        first.countDown();
                    }));
            first.await();
            client.close();
            monitoring.join();
            assertEquals(List.of("one"), lines);
        }
    }

    @Test
    void misuseIsReportedBeforeAnythingIsSent() throws IOException {
        try (ServedLines service = service();
                RasClient client = RasClient.connect(service.address(), LONG)) {
            assertEquals(
                    "timeout must be from 1 s to 3600 s: 0.5 s",
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> client.status(RasFormat.TEXT, Duration.ofMillis(500)))
                            .getMessage());
            assertEquals(
                    "timeout must be > 0: -20 s",
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> RasClient.connect(service.address(), Duration.ofSeconds(-20)))
                            .getMessage());
            assertThrows(IllegalArgumentException.class, () -> client.monitor(RasFormat.TEXT, Set.of(), line -> {}));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> client.monitor(RasFormat.VERBOSE_TEXT, Set.of(RasEvents.TRACE), line -> {}));
            assertEquals(List.of("CLIENT PROTOCOL 2"), service.received);
            assertThrows(
                    RasException.class,
                    () -> client.monitor(RasFormat.TEXT, Set.of(RasEvents.TRACE), line -> {
                        throw new AssertionError(line);
                    }));
            assertThrows(IllegalStateException.class, () -> client.status(RasFormat.TEXT, Duration.ofSeconds(1)));
        }
        assertThrows(IllegalArgumentException.class, () -> RasClient.connect("127.0.0.1:0", LONG));
        assertThrows(IllegalArgumentException.class, () -> RasClient.connect("127.0.0.1", Duration.ZERO));
    }
}
