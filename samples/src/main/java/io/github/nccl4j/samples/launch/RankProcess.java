package io.github.nccl4j.samples.launch;

import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** One rank's process with the threads that copy its output and wait for its end. */
final class RankProcess {

    private final int rank;
    private final Process process;
    private final Copy out;
    private final Copy err;

    /** Where one of a rank's streams goes, and what each line of it begins with. */
    record Output(PrintStream stream, String prefix) {}

    /** A copying task and the thread that runs it. */
    private record Copy(LinePrefixer task, Thread thread) {

        boolean running() {
            return thread.isAlive();
        }

        /** Waits for the end of the stream, but not for a descendant that holds it open and writes nothing. */
        void finish(long patienceMillis) throws InterruptedException {
            long step = 50;
            for (long idle = 0; running() && idle < patienceMillis; ) {
                thread.join(step);
                idle = task.writing() ? 0 : idle + step;
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
        // The variables of an outer torchrun would lead the ranks to its store, those of a store to another place.
        builder.environment()
                .keySet()
                .removeIf(name -> name.startsWith("TORCHELASTIC_")
                        || name.equals("NCCL4J_STORE_PORT")
                        || name.equals("NCCL4J_STORE_BIND"));
        // What it inherits stays as it is: Java would write it anew in the encoding of the locale.
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
        thread("wait-" + rank, () -> started.await(onExit));
        return started;
    }

    private static Copy copy(int rank, InputStream in, Output to, Object lock) {
        LinePrefixer task = new LinePrefixer(in, to.stream(), lock, to.prefix());
        return new Copy(task, thread("output-" + rank, task));
    }

    private static Thread thread(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void await(Consumer<RankExit> onExit) {
        boolean ended = false;
        while (!ended) {
            try {
                process.waitFor();
                ended = true;
            } catch (InterruptedException nobodyInterruptsThis) {
                // Wait on: the exit code must reach the launcher.
            }
        }
        onExit.accept(new RankExit(rank, process.pid(), process.exitValue()));
    }

    boolean alive() {
        return process.isAlive();
    }

    int rank() {
        return rank;
    }

    Process process() {
        return process;
    }

    /** The process and everything that it started, as far as still linked to it. */
    Stream<ProcessHandle> tree() {
        return Stream.concat(process.descendants(), Stream.of(process.toHandle()));
    }

    void awaitExit(long millis) throws InterruptedException {
        process.waitFor(millis, TimeUnit.MILLISECONDS);
    }

    void finishOutput(long patienceMillis) throws InterruptedException {
        out.finish(patienceMillis);
        err.finish(patienceMillis);
    }
}
