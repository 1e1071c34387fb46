package io.github.nccl4j.tools.launch;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * Sends signals that {@link ProcessHandle} can't send: signals other than SIGTERM and SIGKILL, and signals to this process.
 *
 * <p>Uses the {@code kill} command that is built into {@code /bin/sh}. Stateless.
 */
public final class Signals {
    private Signals() {}

    /**
     * Sends a signal.
     *
     * @param signal the name of the signal without SIG, such as {@code STOP}
     * @param pid the id of the process, which may be this process
     * @throws IOException if the signal can't be sent
     * @throws InterruptedException if the calling thread is interrupted
     */
    public static void send(String signal, long pid) throws IOException, InterruptedException {
        Process shell = new ProcessBuilder("/bin/sh", "-c", "kill -" + signal + " " + pid)
                .redirectErrorStream(true)
                .start();
        String output = new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (shell.waitFor() != 0) {
            throw new IOException("can't send SIG" + signal + " to process " + pid + ": " + output.strip());
        }
    }
}
