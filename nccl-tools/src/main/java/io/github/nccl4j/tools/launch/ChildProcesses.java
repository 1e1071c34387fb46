package io.github.nccl4j.tools.launch;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/**
 * Starts child processes that do not outlive this JVM.
 *
 * <p>The first child starts a guard: one {@code /bin/sh} process per JVM that holds the list of running children. When this JVM
 * ends for any reason, including {@code kill -9} and lack of memory, the guard kills (SIGKILL) the children and their
 * descendants, including stopped ones. A system without {@code /bin/sh} has no guard.
 *
 * <p>The environment variable {@value #VARIABLE}, which descendants inherit, identifies them: the links from parent to child are
 * lost when a process in between ends. A descendant that has removed the variable, and whose parent has ended, is not found.
 *
 * <p>Thread-safe.
 */
public final class ChildProcesses {
    /** The marks of a process: those of its ancestors, followed by its own. */
    static final String VARIABLE = "NCCL4J_DESCENT";

    private static final String SCRIPT = "guard.sh";
    private static final long KILL_SECONDS = 5;

    /** The prefix of all marks that this JVM assigns. */
    private static final String MARK_PREFIX =
            ProcessHandle.current().pid() + "-" + Long.toHexString(System.nanoTime()) + ".";

    private static final AtomicLong LAST_MARK = new AtomicLong();

    /** Running children by process id; guarded by the class. */
    private static final Map<Long, Process> RUNNING = new LinkedHashMap<>();

    /** Marks of children, running or not; an entry lives as long as its {@code Process}. Guarded by the class. */
    private static final Map<Process, String> MARKS = new WeakHashMap<>();

    private static boolean guardStarted;
    private static Process guard;

    private ChildProcesses() {}

    /**
     * Starts a child process.
     *
     * @param builder describes the process; its environment is changed
     * @return the process
     * @throws IOException if the process can't be started
     */
    public static Process start(ProcessBuilder builder) throws IOException {
        startGuard();
        String mark = MARK_PREFIX + LAST_MARK.incrementAndGet() + ";";
        builder.environment().put(VARIABLE, Objects.requireNonNullElse(System.getenv(VARIABLE), "") + mark);
        Process process = builder.start();
        register(process, mark);
        process.onExit().thenRun(() -> unregister(process));
        return process;
    }

    /**
     * Lists the running children.
     *
     * @return the processes that {@link #start} has started and that run; a process that has just ended may be included
     */
    public static synchronized List<Process> running() {
        return List.copyOf(RUNNING.values());
    }

    /**
     * Lists all descendants of this JVM, including processes that {@link #start} has not started.
     *
     * @return the descendants, without the guard
     */
    public static synchronized Stream<ProcessHandle> descendants() {
        long guardPid = guard == null ? -1 : guard.pid();
        return ProcessHandle.current().descendants().filter(process -> process.pid() != guardPid);
    }

    /**
     * As {@link #kill(Collection)}, for one process.
     *
     * @param process a process that {@link #start} has started, running or not
     */
    public static void kill(Process process) {
        kill(List.of(process));
    }

    /**
     * Kills (SIGKILL) processes and their descendants, and waits up to ten seconds for their end. An interrupt does not end the
     * wait. The descendants of a process that has already ended are killed, too.
     *
     * @param processes processes that {@link #start} has started, running or not
     */
    public static void kill(Collection<Process> processes) {
        // Parent before children, so that it cannot react to their end.
        for (Process process : processes) {
            List<ProcessHandle> children = process.descendants().toList();
            process.destroyForcibly();
            children.forEach(ProcessHandle::destroyForcibly);
        }
        // A process inside an uninterruptible system call ends later; do not wait for it.
        CompletableFuture.allOf(processes.stream().map(Process::onExit).toArray(CompletableFuture[]::new))
                .completeOnTimeout(null, KILL_SECONDS, TimeUnit.SECONDS)
                .join();
        killMarked(marks(processes));
    }

    private static synchronized List<String> marks(Collection<Process> processes) {
        return processes.stream().map(MARKS::get).filter(Objects::nonNull).toList();
    }

    /** Kills the processes that carry one of the marks, until none is left. */
    private static void killMarked(List<String> marks) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(KILL_SECONDS);
        // During exec the environment of a process is briefly empty: require two scans without a match.
        for (int cleanScans = 0; cleanScans < 2 && System.nanoTime() < deadline; cleanScans++) {
            for (ProcessHandle process : marked(marks)) {
                process.destroyForcibly();
                cleanScans = -1;
            }
        }
    }

    /** The processes that carry one of the marks; environments of other users' processes are unreadable. */
    private static List<ProcessHandle> marked(List<String> marks) {
        // Handles first, environments second: a handle detects that its process id was reused.
        List<ProcessHandle> all = ProcessHandle.allProcesses().toList();
        return all.stream()
                .filter(process -> {
                    String environment = environment(process.pid());
                    return marks.stream().anyMatch(environment::contains);
                })
                .toList();
    }

    /** The environment of a process; empty for zombies, kernel threads, ended processes and other users' processes. */
    private static String environment(long pid) {
        try {
            return Files.readString(Path.of("/proc", Long.toString(pid), "environ"), StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            return "";
        }
    }

    private static synchronized void startGuard() {
        if (guardStarted) {
            return;
        }
        guardStarted = true;
        try {
            guard = new ProcessBuilder("/bin/sh", "-c", script(), "nccl4j-guard", MARK_PREFIX)
                    .redirectOutput(Redirect.DISCARD)
                    .redirectError(Redirect.DISCARD)
                    .start();
        } catch (IOException e) {
            // No shell: run without a guard.
            guard = null;
        }
    }

    private static synchronized void register(Process process, String mark) {
        MARKS.put(process, mark);
        RUNNING.put(process.pid(), process);
        sendToGuard("+ " + process.pid());
    }

    private static synchronized void unregister(Process process) {
        // The process id may already belong to a newer process.
        if (RUNNING.remove(process.pid(), process)) {
            sendToGuard("- " + process.pid());
        }
    }

    private static void sendToGuard(String line) {
        if (guard == null) {
            return;
        }
        try {
            OutputStream lines = guard.getOutputStream();
            lines.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
            lines.flush();
        } catch (IOException e) {
            // The guard was killed.
            guard = null;
        }
    }

    /** The shell script of the guard, without comments, because ps shows the whole script. */
    static String script() {
        try (InputStream script = ChildProcesses.class.getResourceAsStream(SCRIPT)) {
            return new String(script.readAllBytes(), StandardCharsets.UTF_8).replaceAll("(?m)^ *#.*\n", "");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
