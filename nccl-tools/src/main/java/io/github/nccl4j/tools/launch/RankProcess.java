package io.github.nccl4j.tools.launch;

import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.tools.support.DaemonThreads;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** The process of one rank, with the threads that copy its output and wait for its end. */
final class RankProcess {

    private final int rank;
    private final Process process;
    private final Copy out;
    private final Copy err;

    /** The destination of one of a rank's output streams, and the prefix of each line. */
    record Output(PrintStream stream, String prefix) {}

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

    private RankProcess(int rank, Process process, Copy out, Copy err) {
        this.rank = rank;
        this.process = process;
        this.out = out;
        this.err = err;
    }

    static RankProcess start(
            int rank,
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
                        || name.equals("NCCL4J_STORE_BIND"));
        // Do not set inherited variables again: Java would encode their values in the charset of the locale.
        Map<String, String> inherited = SystemText.environment();
        environment.forEach((name, value) -> {
            if (!value.equals(inherited.get(name))) {
                builder.environment().put(name, value);
            }
        });
        Process process = ChildProcesses.start(builder);
        RankProcess started = new RankProcess(
                rank,
                process,
                copy(rank, process.getInputStream(), out, lock),
                copy(rank, process.getErrorStream(), err, lock));
        DaemonThreads.start("wait-" + rank, () -> started.reportExit(onExit));
        return started;
    }

    private static Copy copy(int rank, InputStream in, Output to, Object lock) {
        LinePrefixer task = new LinePrefixer(in, to.stream(), lock, to.prefix());
        return new Copy(task, DaemonThreads.start("output-" + rank, task));
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
        onExit.accept(new RankExit(rank, process.pid(), process.exitValue()));
    }

    boolean isAlive() {
        return process.isAlive();
    }

    int rank() {
        return rank;
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
