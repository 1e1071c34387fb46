package io.github.nccl4j.zookeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RendezvousException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The variables by which ranks find ZooKeeper. */
@Timeout(value = 5, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class EnvironmentSettingsTest {
    private static final String SECRET = "a secret of more than sixteen bytes";

    private static ZooKeeperStore open(Map<String, String> environment, String job, int rank) {
        return EnvironmentSettings.builder(environment).timeout(Ensemble.LIMIT).open(Ensemble.rank(job, rank, 2));
    }

    /** One rank has the secret in the variable, and the other one in a file. */
    @Test
    void ranksMeetByTheEnvironment(@TempDir Path folder) throws Exception {
        Path file = Files.writeString(folder.resolve("secret"), SECRET + "\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
        try (Ensemble ensemble = new Ensemble()) {
            String job = ensemble.job();
            Map<String, String> plain = Map.of("NCCL4J_ZOOKEEPER", ensemble.addresses());
            Map<String, String> first = new HashMap<>(plain);
            first.put("NCCL4J_STORE_SECRET", SECRET);
            first.put("NCCL4J_ZOOKEEPER_SESSION_TIMEOUT", "7");
            Map<String, String> second = new HashMap<>(plain);
            second.put("NCCL4J_STORE_SECRET_FILE", file.toString());
            try (ZooKeeperStore one = open(first, job, 0)) {
                assertEquals(
                        7000,
                        one.session()
                                .client()
                                .getZookeeperClient()
                                .getZooKeeper()
                                .getSessionTimeout());
                assertThrows(RendezvousException.class, () -> open(plain, job, 1));
                try (ZooKeeperStore other = open(second, job, 1)) {
                    one.set("key", new byte[] {42});
                    assertEquals(42, other.get("key", Duration.ofSeconds(20))[0]);
                }
            }
        }
    }

    @Test
    void fileThatOthersCanReadIsRefused(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("secret"), SECRET);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw----r--"));
        Map<String, String> environment =
                Map.of("NCCL4J_ZOOKEEPER", "localhost:1", "NCCL4J_STORE_SECRET_FILE", file.toString());
        String refused = assertThrows(IllegalArgumentException.class, () -> EnvironmentSettings.builder(environment))
                .getMessage();
        assertTrue(refused.endsWith(": " + file + " has mode 604"), refused);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "NCCL4J_ZOOKEEPER | '' | NCCL4J_ZOOKEEPER must be set to the addresses of the ZooKeeper servers",
                "NCCL4J_ZOOKEEPER_SESSION_TIMEOUT | 0 | NCCL4J_ZOOKEEPER_SESSION_TIMEOUT must be a number of seconds > 0: '0'",
                "NCCL4J_ZOOKEEPER_SESSION_TIMEOUT | 2s | NCCL4J_ZOOKEEPER_SESSION_TIMEOUT must be a number of seconds > 0: '2s'",
                "NCCL4J_STORE_SECRET | short | secret must have >= 16 bytes: 5",
                "NCCL4J_STORE_SECRET_FILE | /none | NCCL4J_STORE_SECRET_FILE can't be read",
            })
    void wrongValuesAreNamed(String name, String value, String message) {
        Map<String, String> environment = new HashMap<>(Map.of("NCCL4J_ZOOKEEPER", "localhost:1"));
        environment.put(name, value);
        String refused = assertThrows(IllegalArgumentException.class, () -> EnvironmentSettings.builder(environment))
                .getMessage();
        assertTrue(refused.startsWith(message), refused);
    }

    @Test
    void twoSecretsAreRefused() {
        Map<String, String> environment = Map.of(
                "NCCL4J_ZOOKEEPER", "localhost:1", "NCCL4J_STORE_SECRET", SECRET, "NCCL4J_STORE_SECRET_FILE", "/none");
        assertEquals(
                "NCCL4J_STORE_SECRET and NCCL4J_STORE_SECRET_FILE must not both be set",
                assertThrows(IllegalArgumentException.class, () -> EnvironmentSettings.builder(environment))
                        .getMessage());
    }
}
