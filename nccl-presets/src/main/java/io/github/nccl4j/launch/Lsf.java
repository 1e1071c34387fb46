package io.github.nccl4j.launch;

import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
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
            List<String> hosts = Files.readAllLines(SystemText.path(file)).stream()
                    .map(String::strip)
                    .filter(line -> !line.isEmpty())
                    .toList();
            if (hosts.size() < 2) {
                throw new IllegalArgumentException(
                        "LSB_DJOB_RANKFILE must name the host of jsrun and those of the ranks: " + file + " has "
                                + hosts.size() + " lines");
            }
            return hosts.get(1);
        } catch (IOException | InvalidPathException unreadable) {
            throw new IllegalArgumentException("LSB_DJOB_RANKFILE can't be read: " + unreadable, unreadable);
        }
    }
}
