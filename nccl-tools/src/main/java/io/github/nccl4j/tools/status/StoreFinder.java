package io.github.nccl4j.tools.status;

import io.github.nccl4j.launch.RankInfo;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Finds the addresses and secrets of stores in the variables that a launcher has set: those of this process, or of any process of
 * this user.
 */
final class StoreFinder {
    private static final String SECRET = "NCCL4J_STORE_SECRET";

    private StoreFinder() {}

    /** True if these variables set a secret. */
    static boolean hasSecret(Map<String, String> environment) {
        return Stream.of(SECRET, SECRET + "_FILE")
                .anyMatch(name -> !environment.getOrDefault(name, "").isEmpty());
    }

    /** The address that a rank with these variables would use; null if they name none. */
    static String address(Map<String, String> environment) {
        String text = environment.getOrDefault("NCCL4J_STORE_ADDRESS", "").strip();
        if (!text.isEmpty()) {
            return text;
        }
        String ensemble = environment.getOrDefault("NCCL4J_ZOOKEEPER", "").strip();
        if (!ensemble.isEmpty()) {
            return "zookeeper://" + ensemble;
        }
        String master = environment.getOrDefault("MASTER_ADDR", "").strip();
        if (master.isEmpty()) {
            return null;
        }
        if (environment.containsKey("RANK") || environment.containsKey("WORLD_SIZE")) {
            try {
                RankInfo rank = RankInfo.from(Map.of(), environment);
                return rank.worldSize() == 1 ? null : format(rank.masterAddress(), "" + rank.masterPort());
            } catch (IllegalArgumentException incomplete) {
                // A shell has some of the variables.
            }
        }
        String port = environment.getOrDefault("NCCL4J_STORE_PORT", environment.getOrDefault("MASTER_PORT", ""));
        return format(master, port.isBlank() ? "" + RankInfo.DEFAULT_PORT : port.strip());
    }

    private static String format(String host, String port) {
        return (host.indexOf(':') >= 0 && !host.startsWith("[") ? "[" + host + "]" : host) + ":" + port;
    }

    /** The secrets in the environments of processes that this user may read, by the address of the store; empty for none. */
    static Map<String, String> ofProcesses(Path proc) {
        Map<String, String> found = new TreeMap<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(proc, "[0-9]*")) {
            for (Path process : processes) {
                // A process may have the address of its store without the secret.
                ofProcess(process)
                        .forEach((address, secret) ->
                                found.merge(address, secret, (one, other) -> one.isEmpty() ? other : one));
            }
        } catch (IOException noProc) {
            // Another system, or a container that hides processes: nothing is found.
        }
        return found;
    }

    /** As {@link #ofProcesses} for one; empty if it is no rank. A shell may have some variables of an earlier job. */
    static Map<String, String> ofProcess(Path process) {
        Map<String, String> environment = environment(process.resolve("environ"));
        String address = environment.containsKey("RANK") ? address(environment) : null;
        return address == null ? Map.of() : Map.of(address, environment.getOrDefault(SECRET, ""));
    }

    private static Map<String, String> environment(Path file) {
        Map<String, String> environment = new HashMap<>();
        try {
            for (String entry : new String(Files.readAllBytes(file), StandardCharsets.UTF_8).split("\0")) {
                int equals = entry.indexOf('=');
                if (equals > 0) {
                    environment.put(entry.substring(0, equals), entry.substring(equals + 1));
                }
            }
        } catch (IOException notReadable) {
            // A process of another user, or one that has just ended.
        }
        return environment;
    }
}
