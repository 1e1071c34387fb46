package io.github.nccl4j.samples.launch;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * Signals that {@link ProcessHandle} can't send: other ones than SIGTERM and SIGKILL, and those to the own process.
 *
 * <p>{@code /bin/sh} sends them: {@code kill} is built into it, and need not be installed as a program.
 */
public final class Signals {
    private Signals() {}

    /**
     * Sends a signal.
     *
     * @param signal its name, such as {@code STOP}
     * @param pid the process, which may be this one
     * @throws IOException if it can't be sent
     * @throws InterruptedException if this thread is interrupted
     */
    public static void send(String signal, long pid) throws IOException, InterruptedException {
        Process shell = new ProcessBuilder("/bin/sh", "-c", "kill -" + signal + " " + pid)
                .redirectErrorStream(true)
                .start();
        String output = new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (shell.waitFor() != 0) {
            throw new IOException("SIG" + signal + " can't be sent to process " + pid + ": " + output.strip());
        }
    }
}
