package io.github.nccl4j.tools.ras;

import io.github.nccl4j.ras.RasClient;
import io.github.nccl4j.ras.RasDefect;
import io.github.nccl4j.ras.RasEvents;
import io.github.nccl4j.ras.RasException;
import io.github.nccl4j.ras.RasFormat;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.support.Printable;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nccl4j ras}: asks the RAS service of NCCL for the state of a running job. */
@Command(
        name = "ras",
        sortOptions = false,
        description = {
            "Asks the RAS service of NCCL for the state of a running job.",
            "",
            "NCCL has this service since 2.24; it answers for all processes of the job, in any language. For a collective that "
                    + "hangs, it reports no error, only different numbers of operations on the ranks. For ranks that use nccl4j, "
                    + "'nccl4j status' shows more.",
            "",
            "In some releases of NCCL, a query may crash the job. Without --force, the command does not query these releases, and no "
                    + "service whose release is unknown because its process is on another machine or belongs to another user.",
            "",
            "The exit code is 0 if the service answered, else 1.",
            ""
        })
public final class RasCommand implements Callable<Integer> {
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(10);
    private static final int MAX_TIMEOUT = 3600;

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Parameters(
            arity = "0..1",
            paramLabel = "HOST[:PORT]",
            description =
                    "The address of the service. Default: NCCL_RAS_ADDR, or localhost:" + RasClient.DEFAULT_PORT + ".")
    private String address;

    @Option(names = "--json", description = "Print JSON. Needs NCCL 2.28.7 or newer.")
    private boolean json;

    @Option(
            names = "--verbose",
            description = "Print also details of ranks that differ, and the state of the connections.")
    private boolean verbose;

    @Option(
            names = "--monitor",
            paramLabel = "EVENTS",
            arity = "0..1",
            fallbackValue = "lifecycle",
            description =
                    "Print events until the job ends: lifecycle, trace or all. Needs NCCL 2.29 or newer. Default: "
                            + "${FALLBACK-VALUE}.")
    private String monitor;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            defaultValue = "5",
            description = "Time for which the service waits for other processes. Default: ${DEFAULT-VALUE}.")
    private int timeout;

    @Option(names = "--force", description = "Query the service even if this may crash the job.")
    private boolean force;

    @Spec
    private CommandSpec spec;

    /** The list of the processes of this machine. */
    private final ServiceProcess processes;

    /** For picocli. */
    public RasCommand() {
        this(Path.of("/proc"));
    }

    RasCommand(Path proc) {
        processes = new ServiceProcess(proc);
    }

    @Override
    public Integer call() {
        if (timeout < 1 || timeout > MAX_TIMEOUT) {
            throw wrong("--timeout must be from 1 to " + MAX_TIMEOUT + ": " + timeout);
        }
        if (verbose && (json || monitor != null)) {
            throw wrong(
                    "--verbose cannot be combined with --json, which prints everything, or --monitor, whose events have one form");
        }
        Set<RasEvents> events = monitor == null ? Set.of() : events();
        String service = address == null ? RasClient.defaultAddress() : address;
        RasClient client;
        try {
            client = RasClient.connect(service, CONNECT_TIMEOUT);
        } catch (IllegalArgumentException unusable) {
            throw wrong(unusable.getMessage());
        } catch (RasException absent) {
            return fail(CommandErrors.reason(absent));
        }
        try (client) {
            String risk = force ? null : risk(client);
            if (risk != null) {
                return fail(risk + "; --force queries it nevertheless");
            }
            PrintWriter out = spec.commandLine().getOut();
            if (monitor != null) {
                client.monitor(json ? RasFormat.JSON : RasFormat.TEXT, events, line -> print(out, line + "\n"));
            } else {
                RasFormat format = json ? RasFormat.JSON : verbose ? RasFormat.VERBOSE_TEXT : RasFormat.TEXT;
                print(out, client.status(format, Duration.ofSeconds(timeout)));
            }
            return ExitCode.OK;
        } catch (RasException failure) {
            return fail(CommandErrors.reason(failure));
        }
    }

    private Set<RasEvents> events() {
        if (monitor.equalsIgnoreCase("all")) {
            return Set.of(RasEvents.values());
        }
        for (RasEvents group : RasEvents.values()) {
            if (monitor.equalsIgnoreCase(group.name())) {
                return Set.of(group);
            }
        }
        throw wrong("--monitor must be lifecycle, trace or all: " + monitor);
    }

    /** The reason why a query may crash the job; null if no such defect is known. */
    private String risk(RasClient client) {
        InetSocketAddress service = client.remoteAddress();
        OptionalInt release =
                isLocal(service.getAddress()) ? processes.release(service.getPort()) : OptionalInt.empty();
        if (release.isEmpty()) {
            return "the release of NCCL at " + service + " is unknown, and in some releases a query may crash the job";
        }
        String warning = RasDefect.warning(release.getAsInt());
        return warning.isEmpty() ? null : warning;
    }

    static boolean isLocal(InetAddress address) {
        try {
            return address.isLoopbackAddress() || NetworkInterface.getByInetAddress(address) != null;
        } catch (SocketException unknown) {
            return false;
        }
    }

    private ParameterException wrong(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    private int fail(String reason) {
        spec.commandLine().getErr().println("nccl4j: " + Printable.line(reason));
        return ExitCode.SOFTWARE;
    }

    private static void print(PrintWriter out, String text) {
        out.print(Printable.lines(text));
        out.flush();
    }
}
