package io.github.nccl4j.tests.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tests.ChildJvm.Running;
import io.github.nccl4j.tools.Main;
import java.io.IOException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** {@code doctor --peer} between hosts, which are network namespaces. */
@Timeout(300)
@Tag("alone")
class DoctorPeerTest {
    private static final String SECRET = "a secret of the job";

    @BeforeEach
    void requireHosts() {
        Hosts.require();
    }

    private static Running doctor(Hosts hosts, int host, String secret, String seconds, String option)
            throws IOException {
        return new ChildJvm()
                .by(hosts.on(host))
                .environment("NCCL4J_STORE_SECRET", secret)
                .start(
                        Main.class,
                        "doctor",
                        "--engine",
                        "host",
                        "--no-self-test",
                        "--timeout",
                        seconds,
                        option,
                        Hosts.address(0));
    }

    @Test
    void bothEndsMeasureTheirConnection() throws IOException {
        try (Hosts hosts = Hosts.connected(2)) {
            Running accepting = doctor(hosts, 0, SECRET, "120", "--accept-peer");
            Outcome connected = doctor(hosts, 1, SECRET, "120", "--peer").await();
            for (Outcome outcome : new Outcome[] {connected, accepting.await()}) {
                assertEquals(0, outcome.exitCode(), outcome.output());
                assertTrue(
                        outcome.output()
                                .matches("(?s).*connected to .*10\\.77\\.0\\.1: round trip [0-9.]+ us, [0-9.]+ GB/s.*"),
                        outcome.output());
                assertTrue(outcome.output().contains("eth0, MTU 1500, the first by NCCL's rules"), outcome.output());
            }
        }
    }

    @Test
    void anotherSecretIsRefused() throws IOException {
        try (Hosts hosts = Hosts.connected(2)) {
            Running accepting = doctor(hosts, 0, SECRET, "40", "--accept-peer");
            Outcome refused =
                    doctor(hosts, 1, "another secret of a job", "40", "--peer").await();
            assertEquals(1, refused.exitCode(), refused.output());
            assertTrue(refused.output().contains("no connection to port 29500 of 10.77.0.1"), refused.output());
            assertTrue(refused.output().contains("secret"), refused.output());
            assertTrue(accepting.await().output().contains("no peer came to port 29500 of 10.77.0.1"));
        }
    }
}
