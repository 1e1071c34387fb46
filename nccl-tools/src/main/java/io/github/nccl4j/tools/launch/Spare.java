package io.github.nccl4j.tools.launch;

import io.github.nccl4j.highlevel.NcclLibrary;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * A process that a {@link Launcher} starts in advance, which becomes a rank when another process of that rank fails.
 *
 * <p>The launcher writes the number of the rank to the standard input of the spare. If it closes that end, or ends itself, the spare
 * is not needed.
 */
final class Spare {
    /** Set in the environment of a spare, to its number. */
    static final String VARIABLE = "NCCL4J_SPARE";

    private Spare() {}

    static boolean isSpare() {
        return System.getenv(VARIABLE) != null;
    }

    /**
     * Loads the library, waits until this process is to be a rank, and makes it one for {@code RankInfo.fromEnvironment()}. Ends
     * this JVM with exit code 0 if it is not needed.
     */
    static void awaitPlace() {
        NcclLibrary.get();
        String rank = readLine();
        if (rank.isEmpty()) {
            System.exit(0);
        }
        String size = System.getenv("WORLD_SIZE");
        System.setProperty("nccl4j.rank", rank);
        System.setProperty("nccl4j.worldSize", size);
        System.setProperty("nccl4j.localRank", rank);
        System.setProperty("nccl4j.localWorldSize", size);
    }

    /** Reads no further than the end of the line, and does not close the input, which {@link LauncherWatch} reads next. */
    @SuppressWarnings("resource")
    private static String readLine() {
        StringBuilder line = new StringBuilder();
        try {
            InputStream in = new FileInputStream(FileDescriptor.in);
            for (int next = in.read(); next != '\n'; next = in.read()) {
                if (next < 0) {
                    return "";
                }
                line.append((char) next);
            }
            return line.toString();
        } catch (IOException e) {
            // Same meaning as end-of-file.
            return "";
        }
    }
}
