package io.github.nccl4j.zookeeper;

import io.github.nccl4j.library.SecretFile;
import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.nio.file.InvalidPathException;
import java.time.Duration;
import java.util.Map;

/** The settings of a store in the variables of the environment. The secret has those of {@code TcpStore}. */
final class EnvironmentSettings {
    static final String ENSEMBLE = "NCCL4J_ZOOKEEPER";
    static final String SESSION_TIMEOUT = "NCCL4J_ZOOKEEPER_SESSION_TIMEOUT";
    static final String SECRET = "NCCL4J_STORE_SECRET";
    static final String SECRET_FILE = "NCCL4J_STORE_SECRET_FILE";

    private EnvironmentSettings() {}

    /** Returns a builder with the settings; those that are not set have their defaults. */
    static ZooKeeperStore.Builder builder(Map<String, String> environment) {
        String ensemble = environment.getOrDefault(ENSEMBLE, "");
        if (ensemble.isBlank()) {
            throw new IllegalArgumentException(
                    ENSEMBLE + " must be set to the addresses of the ZooKeeper servers, such as zk1:2181,zk2:2181");
        }
        ZooKeeperStore.Builder builder = ZooKeeperStore.builder(ensemble);
        String seconds = environment.getOrDefault(SESSION_TIMEOUT, "");
        if (!seconds.isEmpty()) {
            builder.sessionTimeout(Duration.ofSeconds(positive(SESSION_TIMEOUT, seconds)));
        }
        return withSecret(builder, environment);
    }

    /** Sets the secret, if there is one. */
    static ZooKeeperStore.Builder withSecret(ZooKeeperStore.Builder builder, Map<String, String> environment) {
        String text = environment.getOrDefault(SECRET, "");
        String file = environment.getOrDefault(SECRET_FILE, "");
        if (!text.isEmpty() && !file.isEmpty()) {
            throw new IllegalArgumentException(SECRET + " and " + SECRET_FILE + " must not both be set");
        }
        if (!text.isEmpty()) {
            builder.secret(Text.bytes(text));
        } else if (!file.isEmpty()) {
            builder.secret(read(file));
        }
        return builder;
    }

    private static int positive(String name, String text) {
        try {
            int number = Integer.parseInt(text);
            if (number > 0) {
                return number;
            }
        } catch (NumberFormatException notANumber) {
            // The message below has the text.
        }
        throw new IllegalArgumentException(name + " must be a number of seconds > 0: '" + text + "'");
    }

    private static byte[] read(String file) {
        try {
            return SecretFile.read(SystemText.path(file));
        } catch (IOException | InvalidPathException unreadable) {
            throw new IllegalArgumentException(SECRET_FILE + " can't be read: " + unreadable, unreadable);
        }
    }
}
