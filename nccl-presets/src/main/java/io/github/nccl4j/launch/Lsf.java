package io.github.nccl4j.launch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What LSF tells beside variables. */
final class Lsf {
    private Lsf() {}

    /** The host of the first task, by LSF's file of hosts; null if there is no such file. Its first line is where jsrun runs. */
    static String firstHost(Variables variables) {
        String file = variables.text("LSB_DJOB_RANKFILE");
        if (file == null) {
            return null;
        }
        try {
            List<String> hosts = Files.readAllLines(Path.of(file)).stream()
                    .map(String::strip)
                    .filter(line -> !line.isEmpty())
                    .toList();
            if (hosts.size() < 2) {
                throw new IllegalArgumentException(
                        "LSB_DJOB_RANKFILE must name the host of jsrun and those of the ranks: " + file + " has "
                                + hosts.size() + " lines");
            }
            return hosts.get(1);
        } catch (IOException unreadable) {
            throw new IllegalArgumentException("LSB_DJOB_RANKFILE can't be read: " + unreadable, unreadable);
        }
    }
}
