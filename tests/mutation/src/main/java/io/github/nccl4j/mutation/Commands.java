package io.github.nccl4j.mutation;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Commands with a time limit. No process of theirs outlives them, nor this JVM. */
final class Commands {
    /** The exit code of timeout at its limit. */
    static final int TIMEOUT = 124;

    private Commands() {}

    static int run(List<String> command, Path folder, Path log, long seconds) throws IOException, InterruptedException {
        List<String> limited = new ArrayList<>(List.of("timeout", "-k", "10", Long.toString(seconds)));
        limited.addAll(command);
        Process process = new ProcessBuilder(limited)
                .directory(folder.toFile())
                .redirectInput(new java.io.File("/dev/null"))
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        // timeout makes a process group of its own.
        Thread killer = new Thread(() -> kill(process.pid()));
        Runtime.getRuntime().addShutdownHook(killer);
        int code = process.waitFor();
        kill(process.pid());
        Runtime.getRuntime().removeShutdownHook(killer);
        return code == 137 ? TIMEOUT : code;
    }

    private static void kill(long group) {
        try {
            new ProcessBuilder("kill", "-KILL", "--", "-" + group)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start()
                    .waitFor();
        } catch (IOException e) {
            System.err.println("nccl4j: processes of a test may still run: " + e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
