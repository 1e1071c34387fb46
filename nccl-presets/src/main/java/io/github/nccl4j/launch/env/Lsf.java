package io.github.nccl4j.launch.env;

import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.util.List;

/** Reader of the host file of LSF. */
final class Lsf {
    private Lsf() {}

    /**
     * Returns the host of the first task; null if LSF has set no host file. The first line of the file is the host of jsrun, the
     * second that of the first task.
     */
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
                        "LSB_DJOB_RANKFILE must have >= 2 lines, the host of jsrun and those of the ranks: " + file
                                + " has " + hosts.size());
            }
            return hosts.get(1);
        } catch (IOException | InvalidPathException unreadable) {
            throw new IllegalArgumentException("LSB_DJOB_RANKFILE can't be read: " + unreadable, unreadable);
        }
    }
}
