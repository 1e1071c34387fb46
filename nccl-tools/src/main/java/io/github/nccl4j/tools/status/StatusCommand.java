package io.github.nccl4j.tools.status;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.StoreObserver;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.support.Printable;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nccl4j status}: asks every rank of a running job which operation it is executing. */
@Command(
        name = "status",
        sortOptions = false,
        description = {
            "Asks every rank of a running job which operation it is executing.",
            "",
            "Shows for each rank the operation that it is executing and its duration, its last completed operation, its host, process "
                    + "and device, and the number of collectives by which it is behind the other ranks. No rank waits for another "
                    + "to answer.",
            "",
            "Without --store, the command asks the store at NCCL4J_STORE_ADDRESS, at NCCL4J_ZOOKEEPER, or at MASTER_ADDR and "
                    + "MASTER_PORT. If these are not set, it asks the store of the job that this user runs on this machine. It "
                    + "reads the secret, as the ranks do, from NCCL4J_STORE_SECRET or NCCL4J_STORE_SECRET_FILE; if these are not "
                    + "set, it uses the NCCL4J_STORE_SECRET of a rank of this user on this machine.",
            "",
            "A store on ZooKeeper needs the artifact nccl-zookeeper with its dependencies on the class path, which "
                    + "NCCL4J_CLASSPATH extends.",
            "",
            "The exit code is 0 if all ranks answered and none is behind, 1 if there is a finding, and 2 if there is no store or no job.",
            ""
        })
public final class StatusCommand implements Callable<Integer> {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(5);
    private static final int MAX_LISTED = 32;
    private static final int MAX_TIMEOUT = 60;
    private static final int MAX_PERIOD = 3600;

    /** Moves the cursor of a terminal to its first line, and erases the following text. */
    private static final String CLEAR = "\u001b[H\u001b[2J";

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Option(
            names = "--store",
            paramLabel = "ADDRESS",
            description = "The store: HOST:PORT or zookeeper://HOST:PORT,...")
    private String store;

    @Option(
            names = "--watch",
            paramLabel = "SECONDS",
            arity = "0..1",
            fallbackValue = "2",
            description = "Repeat the report every SECONDS until the job ends. Default: ${FALLBACK-VALUE}.")
    private Integer watch;

    @Option(names = "--json", description = "Print each report as one line of JSON.")
    private boolean json;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            defaultValue = "1",
            description = "Time in which a rank must answer. Default: ${DEFAULT-VALUE}.")
    private int timeout;

    @Option(names = "--all", description = "List all ranks, not only the first " + MAX_LISTED + ".")
    private boolean all;

    @Spec
    private CommandSpec spec;

    private final Map<String, String> environment;

    /** The list of the processes of this machine. */
    private final Path proc;

    /** For picocli. */
    public StatusCommand() {
        this(System.getenv(), Path.of("/proc"));
    }

    StatusCommand(Map<String, String> environment, Path proc) {
        this.environment = environment;
        this.proc = proc;
    }

    @Override
    public Integer call() throws InterruptedException {
        if (timeout < 1 || timeout > MAX_TIMEOUT) {
            throw new ParameterException(
                    spec.commandLine(), "--timeout must be from 1 to " + MAX_TIMEOUT + ": " + timeout);
        }
        if (watch != null && (watch < 1 || watch > MAX_PERIOD)) {
            throw new ParameterException(spec.commandLine(), "--watch must be from 1 to " + MAX_PERIOD + ": " + watch);
        }
        String address = store == null ? findStore() : store;
        if (address == null) {
            return ExitCode.USAGE;
        }
        try (StoreObserver observer = connect(address)) {
            return look(observer);
        } catch (RendezvousException failure) {
            return fail(CommandErrors.reason(failure));
        } catch (IllegalArgumentException wrong) {
            throw new ParameterException(spec.commandLine(), wrong.getMessage(), wrong);
        }
    }

    private StoreObserver connect(String address) {
        String secret = StoreFinder.hasSecret(environment)
                ? ""
                : StoreFinder.ofProcesses(proc).getOrDefault(address, "");
        return secret.isEmpty()
                ? StoreObserver.connect(address, CONNECT_TIMEOUT)
                : StoreObserver.connect(address, secret.getBytes(StandardCharsets.UTF_8), CONNECT_TIMEOUT);
    }

    /** Returns null after it has printed the reason. */
    private String findStore() {
        String own = StoreFinder.address(environment);
        if (own != null) {
            return own;
        }
        Set<String> found = StoreFinder.ofProcesses(proc).keySet();
        if (found.size() == 1) {
            return found.iterator().next();
        }
        fail(
                found.isEmpty()
                        ? "no job of this user runs on this machine, and no variable names a store: give its address by --store, or"
                                + " set NCCL4J_STORE_ADDRESS"
                        : "several jobs run on this machine: choose one by --store "
                                + String.join(", or --store ", found));
        return null;
    }

    private int fail(String reason) {
        spec.commandLine().getErr().println("nccl4j: " + Printable.line(reason));
        return ExitCode.USAGE;
    }

    private int look(StoreObserver observer) throws InterruptedException {
        PrintWriter out = spec.commandLine().getOut();
        Duration limit = Duration.ofSeconds(timeout);
        boolean looked = false;
        int code = ExitCode.OK;
        while (true) {
            List<JobView> jobs;
            try {
                jobs = observer.look(limit).stream()
                        .map(job -> new JobView(job, limit))
                        .toList();
            } catch (RendezvousException ended) {
                if (!looked) {
                    throw ended;
                }
                spec.commandLine().getErr().println("nccl4j: " + Printable.line(CommandErrors.reason(ended)));
                return code;
            }
            if (jobs.isEmpty()) {
                if (!looked) {
                    return fail("the store at " + observer.address() + " has no job");
                }
                spec.commandLine().getErr().println("nccl4j: the job has ended");
                return code;
            }
            looked = true;
            code = jobs.stream().allMatch(job -> job.findings().isEmpty()) ? ExitCode.OK : ExitCode.SOFTWARE;
            print(out, observer, jobs);
            if (watch == null) {
                return code;
            }
            Thread.sleep(watch * 1000L);
        }
    }

    private void print(PrintWriter out, StoreObserver observer, List<JobView> jobs) {
        if (json) {
            out.println(JsonReport.of(observer.address(), jobs));
        } else {
            StringBuilder text = new StringBuilder();
            if (watch != null && System.console() != null) {
                text.append(CLEAR);
            }
            for (JobView job : jobs) {
                text.append(TextReport.of(job, all ? Integer.MAX_VALUE : MAX_LISTED));
            }
            out.print(text);
        }
        out.flush();
    }
}
