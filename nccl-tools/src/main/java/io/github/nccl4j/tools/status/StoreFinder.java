package io.github.nccl4j.tools.status;

import io.github.nccl4j.launch.RankInfo;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Finds the addresses of stores in the variables that a launcher has set: those of this process, or of any process of this user. */
final class StoreFinder {
    private StoreFinder() {}

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

    /** The addresses in the environments of processes that this user may read, in order. */
    static Set<String> ofProcesses(Path proc) {
        Set<String> found = new TreeSet<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(proc, "[0-9]*")) {
            for (Path process : processes) {
                String address = ofProcess(process);
                if (address != null) {
                    found.add(address);
                }
            }
        } catch (IOException noProc) {
            // Another system, or a container that hides processes: nothing is found.
        }
        return found;
    }

    /** The address that a process uses; null if it is no rank. A shell may have some variables of an earlier job. */
    static String ofProcess(Path process) {
        Map<String, String> environment = environment(process.resolve("environ"));
        return environment.containsKey("RANK") ? address(environment) : null;
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
