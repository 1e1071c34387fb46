package io.github.nccl4j.samples.launch;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Starts processes that end with this JVM, however it ends.
 *
 * <p>A guard, one process of {@code /bin/sh} for each JVM, knows the processes that run. When this JVM has ended, also by
 * {@code kill -9} or without memory, the guard kills (SIGKILL) those and their descendants, also stopped ones. Where there is no
 * {@code /bin/sh} there is no guard.
 *
 * <p>All methods may be called from any thread.
 */
public final class ChildProcesses {
    private static final String SCRIPT = "guard.sh";
    private static final long KILL_SECONDS = 5;

    /** By process id; guarded by the class. */
    private static final Map<Long, Process> RUNNING = new LinkedHashMap<>();

    private static boolean guardTried;
    private static Process guard;

    private ChildProcesses() {}

    /**
     * Starts a process.
     *
     * @param builder the command and everything else
     * @return the process
     * @throws IOException if it can't be started
     */
    public static Process start(ProcessBuilder builder) throws IOException {
        startGuard();
        Process process = builder.start();
        started(process);
        process.onExit().thenRun(() -> ended(process));
        return process;
    }

    /**
     * The processes that run.
     *
     * @return those that {@link #start} has started; one that has just ended may be among them
     */
    public static synchronized List<Process> running() {
        return List.copyOf(RUNNING.values());
    }

    /**
     * The processes that this JVM has started, in any way, and theirs.
     *
     * @return its descendants, without the guard
     */
    public static synchronized Stream<ProcessHandle> descendants() {
        long guarding = guard == null ? -1 : guard.pid();
        return ProcessHandle.current().descendants().filter(process -> process.pid() != guarding);
    }

    /**
     * Kills (SIGKILL) a process with its descendants, and waits for its end.
     *
     * @param process which; nothing happens if it has ended
     */
    public static void kill(Process process) {
        if (!process.isAlive()) {
            return;
        }
        List<ProcessHandle> victims = new ArrayList<>(process.descendants().toList());
        victims.add(process.toHandle());
        victims.forEach(ProcessHandle::destroyForcibly);
        try {
            // A process in an uninterruptible call of the kernel ends later.
            process.waitFor(KILL_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static synchronized void startGuard() {
        if (guardTried) {
            return;
        }
        guardTried = true;
        try {
            guard = new ProcessBuilder("/bin/sh", "-c", script(), "nccl4j-guard")
                    .redirectOutput(Redirect.DISCARD)
                    .redirectError(Redirect.DISCARD)
                    .start();
        } catch (IOException noShell) {
            guard = null;
        }
    }

    private static synchronized void started(Process process) {
        RUNNING.put(process.pid(), process);
        tell("+ " + process.pid());
    }

    private static synchronized void ended(Process process) {
        // Its id may belong to a younger process by now.
        if (RUNNING.remove(process.pid(), process)) {
            tell("- " + process.pid());
        }
    }

    private static void tell(String line) {
        if (guard == null) {
            return;
        }
        try {
            OutputStream lines = guard.getOutputStream();
            lines.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
            lines.flush();
        } catch (IOException killed) {
            guard = null;
        }
    }

    /** What the guard runs. */
    static String script() {
        try (InputStream script = ChildProcesses.class.getResourceAsStream(SCRIPT)) {
            // Who lists processes sees it, and need not see its comments.
            return new String(script.readAllBytes(), StandardCharsets.UTF_8).replaceAll("(?m)^ *#.*\n", "");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
