package io.github.nccl4j.samples.launch;

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
 * Starts processes that end with this JVM, however it ends.
 *
 * <p>A guard, one process of {@code /bin/sh} for each JVM, knows the processes that run. When this JVM has ended, also by
 * {@code kill -9} or without memory, the guard kills (SIGKILL) those and their descendants, also stopped ones. Where there is no
 * {@code /bin/sh} there is no guard.
 *
 * <p>Descendants are known by {@value #VARIABLE}, a variable of the environment that they inherit: the links from parent to child
 * are lost when a process in between ends.
 *
 * <p>All methods may be called from any thread.
 */
public final class ChildProcesses {
    /** Of every process that is started here: a mark of its own behind those of the processes that it descends from. */
    static final String VARIABLE = "NCCL4J_DESCENT";

    private static final String SCRIPT = "guard.sh";
    private static final long KILL_SECONDS = 5;

    /** All marks of this JVM begin with it. */
    private static final String MARK = ProcessHandle.current().pid() + "-" + Long.toHexString(System.nanoTime()) + ".";

    private static final AtomicLong NUMBER = new AtomicLong();

    /** By process id; guarded by the class. */
    private static final Map<Long, Process> RUNNING = new LinkedHashMap<>();

    /** By process, for as long as somebody refers to it; guarded by the class. */
    private static final Map<Process, String> MARKS = new WeakHashMap<>();

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
        String mark = MARK + NUMBER.incrementAndGet() + ";";
        builder.environment().put(VARIABLE, Objects.requireNonNullElse(System.getenv(VARIABLE), "") + mark);
        Process process = builder.start();
        started(process, mark);
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
     * @param process which {@link #start} has started; if it has ended, its descendants are killed
     */
    public static void kill(Process process) {
        kill(List.of(process));
    }

    /**
     * Kills (SIGKILL) processes with their descendants, and waits for their end, for at most ten seconds. An interrupt does not end
     * the wait.
     *
     * @param processes which {@link #start} has started; of those that have ended, the descendants are killed
     */
    public static void kill(Collection<Process> processes) {
        // A process first, then its children: it must not act on their end.
        for (Process process : processes) {
            List<ProcessHandle> children = process.descendants().toList();
            process.destroyForcibly();
            children.forEach(ProcessHandle::destroyForcibly);
        }
        // A process in an uninterruptible call of the kernel ends later.
        CompletableFuture.allOf(processes.stream().map(Process::onExit).toArray(CompletableFuture[]::new))
                .completeOnTimeout(null, KILL_SECONDS, TimeUnit.SECONDS)
                .join();
        killMarked(marks(processes));
    }

    private static synchronized List<String> marks(Collection<Process> processes) {
        return processes.stream().map(MARKS::get).filter(Objects::nonNull).toList();
    }

    /** Kills the processes that have one of the marks, until none is left. */
    private static void killMarked(List<String> marks) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(KILL_SECONDS);
        // The environment of a process that starts a program is not there for a moment: look twice.
        for (int clean = 0; clean < 2 && System.nanoTime() < deadline; clean++) {
            for (ProcessHandle process : marked(marks)) {
                process.destroyForcibly();
                clean = -1;
            }
        }
    }

    /** The processes that have one of the marks. Those of other users can't be read. */
    private static List<ProcessHandle> marked(List<String> marks) {
        // Before their environments are read, since a process id may be given to another process.
        List<ProcessHandle> all = ProcessHandle.allProcesses().toList();
        return all.stream()
                .filter(process -> {
                    String environment = environment(process.pid());
                    return marks.stream().anyMatch(environment::contains);
                })
                .toList();
    }

    /** Empty for a zombie, a process of the kernel, and one that has ended or is not ours. */
    private static String environment(long pid) {
        try {
            return Files.readString(Path.of("/proc", Long.toString(pid), "environ"), StandardCharsets.ISO_8859_1);
        } catch (IOException unreadable) {
            return "";
        }
    }

    private static synchronized void startGuard() {
        if (guardTried) {
            return;
        }
        guardTried = true;
        try {
            guard = new ProcessBuilder("/bin/sh", "-c", script(), "nccl4j-guard", MARK)
                    .redirectOutput(Redirect.DISCARD)
                    .redirectError(Redirect.DISCARD)
                    .start();
        } catch (IOException noShell) {
            guard = null;
        }
    }

    private static synchronized void started(Process process, String mark) {
        MARKS.put(process, mark);
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

    /** The program of the guard, without its comments: lists of processes show it. */
    static String script() {
        try (InputStream script = ChildProcesses.class.getResourceAsStream(SCRIPT)) {
            return new String(script.readAllBytes(), StandardCharsets.UTF_8).replaceAll("(?m)^ *#.*\n", "");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
