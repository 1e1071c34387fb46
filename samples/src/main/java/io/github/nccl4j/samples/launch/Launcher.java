package io.github.nccl4j.samples.launch;

import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;

/**
 * Runs one process per rank on this machine and ends them together.
 *
 * <p>Each rank gets torchrun's variables ({@code RANK}, {@code WORLD_SIZE}, {@code LOCAL_RANK}, {@code LOCAL_WORLD_SIZE},
 * {@code MASTER_ADDR}, {@code MASTER_PORT}). Every line that it writes is shown behind {@code [rank]}. As soon as one rank fails, the
 * others are asked to end (SIGTERM) and, after a second, killed with everything that they started. The same happens when
 * this JVM is asked to end; when it is killed, {@link LauncherWatch} and {@link ChildProcesses} end the ranks.
 *
 * <p>An object runs once; {@link #run()} may be called from any thread.
 */
public final class Launcher {

    /** The exit code when the time limit ends the run, as that of {@code timeout(1)}. */
    public static final int TIMED_OUT = 124;

    /** A killed rank makes others fail within milliseconds: look this long for the one that was killed. */
    private static final long CAUSE_MILLIS = 200;

    private static final long GRACE_MILLIS = 1000;
    private static final long OUTPUT_PATIENCE_MILLIS = 300;

    private final List<String> command;
    private final int ranks;
    private final Map<String, String> environment;
    private final Duration limit;
    private final PrintStream out;
    private final PrintStream err;
    private final boolean prefixed;
    private final List<RankProcess> started = new ArrayList<>();
    private final BlockingQueue<RankExit> exits = new LinkedBlockingQueue<>();
    private IntPredicate expendable = rank -> false;
    private volatile boolean stopping;

    /**
     * Describes a run whose output begins, in each line, with the rank that it came from.
     *
     * @param command the command of every rank, such as {@link JavaCommand#of} builds it
     * @param ranks the number of ranks, at least 1
     * @param environment further variables for every rank
     * @param limit after which the run is ended, or null for none
     * @param out where the ranks' standard output goes
     * @param err where the ranks' standard error and the launcher's closing line go
     * @throws IllegalArgumentException if {@code ranks} is less than 1
     */
    public Launcher(
            List<String> command,
            int ranks,
            Map<String, String> environment,
            Duration limit,
            PrintStream out,
            PrintStream err) {
        this(command, ranks, environment, limit, out, err, true);
    }

    /**
     * Describes a run.
     *
     * @param command the command of every rank, such as {@link JavaCommand#of} builds it
     * @param ranks the number of ranks, at least 1
     * @param environment further variables for every rank
     * @param limit after which the run is ended, or null for none
     * @param out where the ranks' standard output goes
     * @param err where the ranks' standard error and the launcher's closing line go
     * @param prefixed whether each line begins with the rank that it came from; else those of rank 0's standard output do not,
     *     so that programs can read it
     * @throws IllegalArgumentException if {@code ranks} is less than 1
     */
    public Launcher(
            List<String> command,
            int ranks,
            Map<String, String> environment,
            Duration limit,
            PrintStream out,
            PrintStream err,
            boolean prefixed) {
        if (ranks < 1) {
            throw new IllegalArgumentException("the number of ranks must be at least 1: " + ranks);
        }
        this.command = List.copyOf(command);
        this.ranks = ranks;
        this.environment = Map.copyOf(environment);
        this.limit = limit;
        this.out = out;
        this.err = err;
        this.prefixed = prefixed;
    }

    /**
     * Lets the others go on when some ranks are killed (SIGKILL), for a program that shows what they do then.
     *
     * @param ranks which ranks; none unless this is called
     * @return this
     */
    public Launcher mayBeKilled(IntPredicate ranks) {
        expendable = ranks;
        return this;
    }

    /**
     * Starts the ranks and waits for all of them.
     *
     * @return 0 if every rank returned 0, else the exit code of the first that failed (128 + signal for a killed one), or
     *     {@link #TIMED_OUT}
     * @throws IOException if a process can't be started; those started before are ended
     * @throws InterruptedException if this thread is interrupted; all ranks are ended
     */
    public int run() throws IOException, InterruptedException {
        Thread hook = new Thread(this::stop, "end-ranks");
        Runtime.getRuntime().addShutdownHook(hook);
        try {
            startAll();
            Outcome outcome = awaitAll();
            // Ctrl-C reaches the ranks too: then nobody wants to read which of them noticed first.
            boolean interrupted = stopping;
            stop();
            for (RankProcess rank : started) {
                rank.finishOutput(OUTPUT_PATIENCE_MILLIS);
            }
            if (outcome.message() != null && !interrupted) {
                err.println("nccl4j: " + outcome.message());
            }
            return outcome.code();
        } finally {
            stop();
            removeHook(hook);
        }
    }

    private record Outcome(int code, String message) {}

    private void startAll() throws IOException {
        int port = freePort();
        Object lock = new Object();
        for (int rank = 0; rank < ranks; rank++) {
            synchronized (started) {
                if (stopping) {
                    return;
                }
                String prefix = "[" + rank + "] ";
                started.add(RankProcess.start(
                        rank,
                        command,
                        variables(rank, port),
                        new RankProcess.Output(out, prefixed || rank > 0 ? prefix : ""),
                        new RankProcess.Output(err, prefix),
                        lock,
                        exits::add));
            }
        }
    }

    private Map<String, String> variables(int rank, int port) {
        Map<String, String> variables = new HashMap<>(environment);
        variables.put("RANK", Integer.toString(rank));
        variables.put("WORLD_SIZE", Integer.toString(ranks));
        variables.put("LOCAL_RANK", Integer.toString(rank));
        variables.put("LOCAL_WORLD_SIZE", Integer.toString(ranks));
        variables.put("MASTER_ADDR", "127.0.0.1");
        variables.put("MASTER_PORT", Integer.toString(port));
        return variables;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        }
    }

    private Outcome awaitAll() throws InterruptedException {
        long deadline = limit == null ? Long.MAX_VALUE : System.nanoTime() + limit.toNanos();
        for (int ended = 0; ended < ranks; ended++) {
            RankExit exit =
                    limit == null ? exits.take() : exits.poll(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
            if (exit == null) {
                return new Outcome(
                        TIMED_OUT, "timed out after " + limit.toSeconds() + " s; still running: " + running());
            }
            if (exit.isKill() && expendable.test(exit.rank())) {
                err.println("nccl4j: " + exit.describe() + "; the others go on");
            } else if (exit.failed()) {
                RankExit cause = cause(exit);
                return new Outcome(cause.code(), cause.describe());
            }
        }
        return new Outcome(0, null);
    }

    /** The first failure, unless a rank that was killed shows up right after it: then it is the others' reason. */
    private RankExit cause(RankExit first) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(CAUSE_MILLIS);
        RankExit exit = first;
        while (exit != null && !exit.killed()) {
            exit = exits.poll(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
        return exit == null ? first : exit;
    }

    private String running() {
        List<RankProcess> alive = started.stream().filter(RankProcess::alive).toList();
        return (alive.size() == 1 ? "rank " : "ranks ")
                + alive.stream()
                        .sorted(Comparator.comparingInt(RankProcess::rank))
                        .map(rank -> Integer.toString(rank.rank()))
                        .collect(Collectors.joining(", "));
    }

    /** Ends what still runs. Called at the end of a run and by the shutdown hook; whoever comes second waits for the first. */
    private void stop() {
        synchronized (started) {
            if (stopping) {
                return;
            }
            stopping = true;
            List<ProcessHandle> alive = started.stream()
                    .filter(RankProcess::alive)
                    .flatMap(RankProcess::tree)
                    .toList();
            if (!alive.isEmpty()) {
                alive.forEach(ProcessHandle::destroy);
                await(GRACE_MILLIS);
            }
            // Also what a rank has left that has ended by itself.
            ChildProcesses.kill(started.stream().map(RankProcess::process).toList());
        }
    }

    private void await(long millis) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        try {
            for (RankProcess rank : started) {
                rank.awaitExit(Math.max(0, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime())));
            }
        } catch (InterruptedException interrupted) {
            // Go on at once: the ranks are ended in any case.
            Thread.currentThread().interrupt();
        }
    }

    private static void removeHook(Thread hook) {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException shuttingDown) {
            // The hook runs already and finds nothing left to do.
        }
    }
}
