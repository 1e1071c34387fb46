package io.github.nccl4j.tools.launch;

import io.github.nccl4j.launch.TcpStoreServer;
import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Runs one process per rank on this machine and ends all ranks together.
 *
 * <p>Each rank gets torchrun's variables ({@code RANK}, {@code WORLD_SIZE}, {@code LOCAL_RANK}, {@code LOCAL_WORLD_SIZE},
 * {@code MASTER_ADDR}, {@code MASTER_PORT}), and the address of a store that this process keeps for them
 * ({@code NCCL4J_STORE_ADDRESS}), so that every rank may end. The store has a random secret, which only the ranks get ({@code
 * NCCL4J_STORE_SECRET}), unless the environment sets one. Each line of a rank's output gets the prefix {@code [rank]}. When a rank fails, the
 * launcher sends SIGTERM to the others, and after one second kills (SIGKILL) those that still run, with all their descendants.
 * The same happens when this JVM exits. When this JVM is killed, {@link LauncherWatch} and {@link ChildProcesses} end the ranks.
 *
 * <p>With {@link #maxRestarts}, a rank that fails is started again, alone and with the same variables, while the others continue:
 * it can join the store in its own place. With {@link #spares}, a process that was started in advance takes the place of the rank
 * at once, before any restart.
 *
 * <p>A launcher runs once. {@link #run()} may be called from any thread.
 */
public final class Launcher {

    /** The exit code of a run that exceeds its time limit, as that of {@code timeout(1)}. */
    public static final int TIMED_OUT = 124;

    /** The exit code of a command that was used wrongly: another process would fail alike. */
    private static final int USAGE = 2;

    private static final String SECRET = "NCCL4J_STORE_SECRET";
    private static final int SECRET_BYTES = 32;

    private static final long GRACE_MILLIS = 1000;

    /**
     * All that is left when the ranks have ended is in the pipes. Only a process that has dropped the variables of the launcher can
     * still hold one open, so the limit is for that case alone: on a loaded machine, the thread that copies may be late.
     */
    private static final long OUTPUT_IDLE_MILLIS = 5000;

    private final List<String> command;
    private final int ranks;
    private final Map<String, String> environment;
    private final Duration limit;
    private final PrintStream out;
    private final PrintStream err;
    private final boolean prefixed;
    private final List<RankProcess> started = new ArrayList<>();
    private final BlockingQueue<RankExit> exits = new LinkedBlockingQueue<>();
    private final Object outputLock = new Object();
    private IntPredicate expendable = rank -> false;
    private int maxRestarts;
    private int spares;

    /** A killed rank makes others fail within milliseconds: after a failure, wait this long for a rank that was killed. */
    private Duration causeLimit = Duration.ofMillis(200);

    /** The spares that wait; used by the thread that runs. */
    private final Deque<RankProcess> waiting = new ArrayDeque<>();

    private volatile boolean stopping;

    /**
     * Creates a launcher that puts the rank before each line of output.
     *
     * @param command the command of every rank, such as one of {@link JavaCommand#of}
     * @param ranks the number of ranks, at least 1
     * @param environment additional variables of every rank
     * @param limit the time limit of the run, or null for none
     * @param out receives the ranks' standard output
     * @param err receives the ranks' standard error and the launcher's messages
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
     * Creates a launcher.
     *
     * @param command the command of every rank, such as one of {@link JavaCommand#of}
     * @param ranks the number of ranks, at least 1
     * @param environment additional variables of every rank
     * @param limit the time limit of the run, or null for none
     * @param out receives the ranks' standard output
     * @param err receives the ranks' standard error and the launcher's messages
     * @param prefixed true to put the rank before each line; false to leave rank 0's standard output as it is, for programs that
     *     read it
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
     * Sets the ranks whose death by SIGKILL does not end the run, for programs that survive the loss of a rank. By default there
     * are none.
     *
     * @param ranks true for a rank that may be killed
     * @return this launcher
     */
    public Launcher expendable(IntPredicate ranks) {
        expendable = ranks;
        return this;
    }

    /**
     * Sets how many processes this launcher starts in place of ranks that fail, for programs that take ranks back. By default
     * none. A rank is not started again if it was used wrongly (exit code 2), or asked to end by SIGHUP, SIGINT or SIGTERM.
     *
     * @param restarts the number for all ranks together, at least 0
     * @return this launcher
     * @throws IllegalArgumentException if it is negative
     */
    public Launcher maxRestarts(int restarts) {
        if (restarts < 0) {
            throw new IllegalArgumentException("the number of restarts must be at least 0: " + restarts);
        }
        maxRestarts = restarts;
        return this;
    }

    /**
     * Sets how many processes this launcher starts in advance, for programs that take ranks back. Each has the variables of a
     * rank except {@code RANK} and {@code LOCAL_RANK}, and {@code NCCL4J_SPARE}, its number. When a rank fails that {@link
     * #maxRestarts} would start again, one of them takes its place: it gets the rank as a line of its standard input. When the
     * ranks have ended, the input of the others ends, and they must end, too. By default none.
     *
     * @param count the number, at least 0
     * @return this launcher
     * @throws IllegalArgumentException if it is negative
     */
    public Launcher spares(int count) {
        if (count < 0) {
            throw new IllegalArgumentException("the number of spares must be at least 0: " + count);
        }
        spares = count;
        return this;
    }

    /** Sets how long to wait for a rank that was killed after another has failed. */
    Launcher causeLimit(Duration limit) {
        causeLimit = limit;
        return this;
    }

    /**
     * Starts the ranks and waits for all of them.
     *
     * @return 0 if every rank exited with 0; {@link #TIMED_OUT}; or the exit code of the first rank that failed (128 + signal
     *     number for a killed rank)
     * @throws IOException if a process can't be started; the other ranks are ended
     * @throws InterruptedException if the calling thread is interrupted; all ranks are ended
     */
    public int run() throws IOException, InterruptedException {
        Thread hook = new Thread(this::stop, "end-ranks");
        Runtime.getRuntime().addShutdownHook(hook);
        String secret = newSecret(SystemText.environment());
        try (TcpStoreServer store = startStore(secret)) {
            int port = freePort();
            Function<Role, Map<String, String>> variables = role -> variables(role, port, store.address(), secret);
            for (int rank = 0; rank < ranks; rank++) {
                start(Role.rank(rank), variables);
            }
            for (int spare = 0; spare < spares; spare++) {
                start(Role.spare(spare), variables);
            }
            Outcome outcome = awaitAll(variables);
            // Ctrl-C also reaches the ranks: do not report the first of them that ends as a failure.
            boolean interrupted = stopping;
            stop();
            for (RankProcess rank : started) {
                rank.finishOutput(OUTPUT_IDLE_MILLIS);
            }
            if (outcome.message() != null && !interrupted) {
                report(outcome.message());
            }
            return outcome.code();
        } finally {
            stop();
            removeHook(hook);
        }
    }

    private record Outcome(int code, String message) {}

    private void start(Role role, Function<Role, Map<String, String>> variables) throws IOException {
        synchronized (started) {
            if (stopping) {
                return;
            }
            RankProcess process = RankProcess.start(
                    role,
                    command,
                    variables.apply(role),
                    new RankProcess.Output(out, now -> prefixed || !now.equals(Role.rank(0)) ? now.prefix() : ""),
                    new RankProcess.Output(err, Role::prefix),
                    outputLock,
                    exits::add);
            started.add(process);
            if (role.isSpare()) {
                waiting.add(process);
            }
        }
    }

    /** A secret for the ranks of this run; null if the environment determines it. */
    static String newSecret(Map<String, String> environment) {
        // Ranks at ZooKeeper must have the same secret when they start again.
        if (Stream.of(SECRET, SECRET + "_FILE", "NCCL4J_ZOOKEEPER")
                .anyMatch(name -> !environment.getOrDefault(name, "").isEmpty())) {
            return null;
        }
        byte[] random = new byte[SECRET_BYTES];
        new SecureRandom().nextBytes(random);
        return HexFormat.of().formatHex(random);
    }

    private static TcpStoreServer startStore(String secret) {
        InetAddress address = InetAddress.getLoopbackAddress();
        return secret == null
                ? TcpStoreServer.start(address, 0)
                : TcpStoreServer.start(address, 0, secret.getBytes(StandardCharsets.US_ASCII));
    }

    private Map<String, String> variables(Role role, int port, String store, String secret) {
        Map<String, String> variables = new HashMap<>(environment);
        String number = Integer.toString(role.number());
        if (role.isSpare()) {
            variables.put(Spare.VARIABLE, number);
        } else {
            variables.put("RANK", number);
            variables.put("LOCAL_RANK", number);
        }
        variables.put("WORLD_SIZE", Integer.toString(ranks));
        variables.put("LOCAL_WORLD_SIZE", Integer.toString(ranks));
        variables.put("MASTER_ADDR", "127.0.0.1");
        variables.put("MASTER_PORT", Integer.toString(port));
        variables.put("NCCL4J_STORE_ADDRESS", store);
        if (secret != null) {
            variables.put(SECRET, secret);
        }
        return variables;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        }
    }

    private Outcome awaitAll(Function<Role, Map<String, String>> variables) throws IOException, InterruptedException {
        long deadline = limit == null ? Long.MAX_VALUE : System.nanoTime() + limit.toNanos();
        int restarts = 0;
        int replaced = 0;
        for (int ended = 0; ended < ranks; ) {
            RankExit exit =
                    limit == null ? exits.take() : exits.poll(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
            if (exit == null) {
                return new Outcome(
                        TIMED_OUT, "timed out after " + limit.toSeconds() + " s; still running: " + runningRanks());
            }
            if (exit.role().isSpare()) {
                waiting.removeIf(spare -> spare.role().equals(exit.role()));
                report(exit.describe() + "; spares left: " + waiting.size());
                continue;
            }
            if (isWorthRestart(exit) && !stopping) {
                if (replace(exit)) {
                    replaced++;
                    continue;
                }
                if (restarts < maxRestarts) {
                    restarts++;
                    report(exit.describe() + "; starting it again, restart " + restarts + " of at most " + maxRestarts);
                    start(exit.role(), variables);
                    continue;
                }
            }
            ended++;
            if (exit.isSigkill() && expendable.test(exit.role().number())) {
                report(exit.describe() + "; the other ranks continue");
            } else if (exit.isFailure()) {
                RankExit cause = cause(exit);
                return new Outcome(
                        cause.code(),
                        cause.describe()
                                + (replaced == 0 ? "" : "; spares used before that: " + replaced)
                                + (restarts == 0 ? "" : "; restarts before that: " + restarts));
            }
        }
        return new Outcome(0, null);
    }

    private void report(String message) {
        err.println("nccl4j: " + message);
    }

    /** Lets a spare take the place of a rank; returns false if none is left. */
    private boolean replace(RankExit exit) {
        for (RankProcess spare = waiting.poll(); spare != null; spare = waiting.poll()) {
            String name = spare.role().describe();
            if (spare.takePlace(exit.role().number())) {
                report(exit.describe() + "; " + name + " (pid "
                        + spare.process().pid() + ") takes its place, spares left: " + waiting.size());
                return true;
            }
        }
        return false;
    }

    /** False also for ranks that were asked to end: Ctrl-C reaches them, too. */
    private static boolean isWorthRestart(RankExit exit) {
        return exit.isFailure() && exit.code() != USAGE && !exit.isAskedToEnd();
    }

    /** The cause of a run's failure: a rank that was killed at about the time of the first failure, else the first failure. */
    private RankExit cause(RankExit first) throws InterruptedException {
        long deadline = System.nanoTime() + causeLimit.toNanos();
        RankExit exit = first;
        while (exit != null && (!exit.isKilled() || exit.role().isSpare())) {
            exit = exits.poll(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
        return exit == null ? first : exit;
    }

    private String runningRanks() {
        List<Integer> alive = started.stream()
                .filter(RankProcess::isAlive)
                .map(RankProcess::role)
                .filter(role -> !role.isSpare())
                .map(Role::number)
                .sorted()
                .toList();
        return (alive.size() == 1 ? "rank " : "ranks ")
                + alive.stream().map(rank -> Integer.toString(rank)).collect(Collectors.joining(", "));
    }

    /** Ends the ranks that still run. Idempotent; a concurrent second call returns when the first is done. */
    private void stop() {
        synchronized (started) {
            if (stopping) {
                return;
            }
            stopping = true;
            List<RankProcess> alive =
                    started.stream().filter(RankProcess::isAlive).toList();
            if (!alive.isEmpty()) {
                Map<Boolean, List<RankProcess>> spare = alive.stream()
                        .collect(Collectors.partitioningBy(
                                process -> process.role().isSpare()));
                spare.get(true).forEach(RankProcess::dismiss);
                spare.get(false).stream().flatMap(RankProcess::tree).toList().forEach(ProcessHandle::destroy);
                awaitExits(GRACE_MILLIS);
            }
            // All ranks, because a rank that has ended may have left descendants.
            ChildProcesses.kill(started.stream().map(RankProcess::process).toList());
        }
    }

    private void awaitExits(long timeoutMillis) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
        try {
            for (RankProcess rank : started) {
                rank.awaitExit(Math.max(0, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime())));
            }
        } catch (InterruptedException e) {
            // End the grace period early.
            Thread.currentThread().interrupt();
        }
    }

    private static void removeHook(Thread hook) {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
            // The JVM is shutting down; the hook has nothing left to do.
        }
    }
}
