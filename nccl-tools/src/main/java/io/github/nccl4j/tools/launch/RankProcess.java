package io.github.nccl4j.tools.launch;

import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.tools.support.DaemonThreads;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * The process of one rank, or of a spare that waits to become one, with the threads that copy its output and wait for its end.
 * Thread-safe.
 */
final class RankProcess {
    private static final Logger LOGGER = System.getLogger(RankProcess.class.getName());

    private final AtomicReference<Role> role;
    private final Process process;
    private final Copy out;
    private final Copy err;

    /** True if the end of the process was reported; guarded by {@link #role}. */
    private boolean isReported;

    /** The destination of one of a rank's output streams, and the prefix of each line for a role. */
    record Output(PrintStream stream, Function<Role, String> prefix) {}

    /** A copying task and the thread that runs it. */
    private record Copy(LinePrefixer task, Thread thread) {

        boolean isRunning() {
            return thread.isAlive();
        }

        /**
         * Waits for the end of the stream, or until it is idle for {@code idleMillis}: a descendant of the rank may hold it open
         * without writing.
         */
        void finish(long idleMillis) throws InterruptedException {
            long step = 50;
            for (long idle = 0; isRunning() && idle < idleMillis; ) {
                thread.join(step);
                idle = task.isWriting() ? 0 : idle + step;
            }
        }
    }

    private RankProcess(AtomicReference<Role> role, Process process, Copy out, Copy err) {
        this.role = role;
        this.process = process;
        this.out = out;
        this.err = err;
    }

    static RankProcess start(
            Role first,
            List<String> command,
            Map<String, String> environment,
            Output out,
            Output err,
            Object lock,
            Consumer<RankExit> onExit)
            throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command);
        // Variables of an outer torchrun, or of an outer store, would direct the ranks to the wrong store.
        builder.environment()
                .keySet()
                .removeIf(name -> name.startsWith("TORCHELASTIC_")
                        || name.equals("NCCL4J_STORE_PORT")
                        || name.equals("NCCL4J_STORE_BIND")
                        || name.equals(Spare.VARIABLE)
                        || first.isSpare() && Set.of("RANK", "LOCAL_RANK").contains(name));
        // Do not set inherited variables again: Java would encode their values in the charset of the locale.
        Map<String, String> inherited = SystemText.environment();
        environment.forEach((name, value) -> {
            if (!value.equals(inherited.get(name))) {
                builder.environment().put(name, value);
            }
        });
        Process process = ChildProcesses.start(builder);
        AtomicReference<Role> role = new AtomicReference<>(first);
        RankProcess started = new RankProcess(
                role,
                process,
                copy(role, process.getInputStream(), out, lock),
                copy(role, process.getErrorStream(), err, lock));
        DaemonThreads.start("wait for " + first.describe(), () -> started.reportExit(onExit));
        return started;
    }

    private static Copy copy(AtomicReference<Role> role, InputStream in, Output to, Object lock) {
        LinePrefixer task =
                new LinePrefixer(in, to.stream(), lock, () -> to.prefix().apply(role.get()));
        return new Copy(task, DaemonThreads.start("output of " + role.get().describe(), task));
    }

    /**
     * Makes this spare a rank.
     *
     * @param rank the rank
     * @return false if the spare has ended; if true, its end will be reported as that of the rank
     */
    boolean takePlace(int rank) {
        Role spare = role.get();
        // After its end is reported, the role does not change.
        synchronized (role) {
            if (isReported) {
                return false;
            }
            role.set(Role.rank(rank));
        }
        try {
            OutputStream in = process.getOutputStream();
            in.write((rank + "\n").getBytes(StandardCharsets.US_ASCII));
            in.flush();
        } catch (IOException e) {
            LOGGER.log(Level.DEBUG, () -> spare.describe() + " ends: " + e.getMessage());
        }
        return true;
    }

    /** Lets a spare end by itself. */
    void dismiss() {
        try {
            process.getOutputStream().close();
        } catch (IOException e) {
            LOGGER.log(Level.DEBUG, () -> role.get().describe() + " has ended: " + e.getMessage());
        }
    }

    private void reportExit(Consumer<RankExit> onExit) {
        boolean ended = false;
        while (!ended) {
            try {
                process.waitFor();
                ended = true;
            } catch (InterruptedException e) {
                // Continue: the launcher waits for the exit code.
            }
        }
        Role last;
        synchronized (role) {
            isReported = true;
            last = role.get();
        }
        onExit.accept(new RankExit(last, process.pid(), process.exitValue()));
    }

    boolean isAlive() {
        return process.isAlive();
    }

    Role role() {
        return role.get();
    }

    Process process() {
        return process;
    }

    /** The process and its descendants, without orphans of descendants that have ended. */
    Stream<ProcessHandle> tree() {
        return Stream.concat(process.descendants(), Stream.of(process.toHandle()));
    }

    void awaitExit(long timeoutMillis) throws InterruptedException {
        process.waitFor(timeoutMillis, TimeUnit.MILLISECONDS);
    }

    /** Waits until all output is copied, or until each stream is idle for {@code idleMillis}. */
    void finishOutput(long idleMillis) throws InterruptedException {
        out.finish(idleMillis);
        err.finish(idleMillis);
    }
}
