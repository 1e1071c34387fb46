package io.github.nccl4j.launch.env;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of {@link Endpoint}: names, IPv4 and IPv6 addresses, with and without a port. */
class EndpointTest {
    private static final int STANDARD = 29500;

    @ParameterizedTest
    @CsvSource({
        "node0, node0, 29500",
        "node0:1, node0, 1",
        "' node0:65535 ', node0, 65535",
        "10.0.0.1:4711, 10.0.0.1, 4711",
        "::1, ::1, 29500",
        "fe80::1:4711, fe80::1:4711, 29500",
        "[::1], ::1, 29500",
        "[::1]:4711, ::1, 4711",
        "' [fe80::1%eth0]:80 ', fe80::1%eth0, 80",
        ":4711, '', 4711"
    })
    void splitsHostAndPort(String endpoint, String host, int port) {
        assertEquals(host, Endpoint.host(endpoint));
        assertEquals(port, Endpoint.port("store", endpoint, STANDARD));
    }

    @ParameterizedTest
    @ValueSource(strings = {"node0:0", "node0:65536", "node0:-1", "node0:x", "node0:", "[::1]:70000"})
    void rejectsPortOutOfRange(String endpoint) {
        assertEquals(
                "store must end with a port from 1 to 65535: " + endpoint,
                assertThrows(IllegalArgumentException.class, () -> Endpoint.port("store", endpoint, STANDARD))
                        .getMessage());
    }

    @Test
    void formatsHostAndPort() {
        assertEquals("node0:1", Endpoint.format("node0", 1));
        assertEquals("[::1]:1", Endpoint.format("::1", 1));
    }
}
