package io.github.nccl4j.tools;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.tools.doctor.Choice;
import io.github.nccl4j.tools.doctor.Doctor;
import io.github.nccl4j.tools.doctor.Machine;
import io.github.nccl4j.tools.doctor.Peer;
import io.github.nccl4j.tools.doctor.Report;
import io.github.nccl4j.tools.support.Printable;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import org.bytedeco.javacpp.Loader;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nccl4j doctor}: finds problems with NCCL on this machine. */
@Command(
        name = "doctor",
        description = {
            "Finds problems with NCCL on this machine, and suggests remedies.",
            "",
            "Checks the library that an application would load, GPUs and their links, RDMA, network interfaces, settings, "
                    + "limits, the container and the launcher, and runs a test with several ranks. Needs neither a GPU nor "
                    + "NCCL. The exit code is 1 if there is a problem, else 0, even with warnings.",
            ""
        })
final class DoctorCommand implements Callable<Integer> {

    /** Small sizes; the largest exceeds a chunk of NCCL's protocols. */
    private static final List<String> SELF_TEST =
            List.of("run", "01-all-reduce", "-e", "4M", "-f", "8", "-w", "1", "-i", "2", "--init-timeout", "30");

    private static final List<String> SECRETS = List.of("NCCL4J_STORE_SECRET", "NCCL4J_STORE_SECRET_FILE");

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Option(names = "--json", description = "Print a JSON object instead of text.")
    private boolean json;

    @Option(
            names = "--engine",
            paramLabel = "E",
            description = "nccl, rccl, host or auto. Default: -Dnccl4j.engine, NCCL4J_ENGINE, or nccl.")
    private String engine;

    @Option(
            names = "--library",
            paramLabel = "PATH",
            description = "The library to examine. Default: -Dnccl4j.library or NCCL4J_LIBRARY.")
    private String library;

    @Option(
            names = "--pid",
            paramLabel = "PID",
            description = "List the copies of NCCL that a running process has loaded.")
    private Long pid;

    @Option(names = "--no-self-test", description = "Omit the test with several ranks.")
    private boolean noSelfTest;

    @ArgGroup
    private PeerOptions peer;

    /** The two ends of the test between hosts. */
    private static final class PeerOptions {
        @Option(
                names = "--peer",
                paramLabel = "HOST",
                description =
                        "Test the connection to HOST, on which doctor runs with --accept-peer HOST at the same time: "
                                + "interface, MTU, round trip and bandwidth. Both need an equal NCCL4J_STORE_SECRET.")
        private String host;

        @Option(
                names = "--accept-peer",
                paramLabel = "ADDRESS",
                description =
                        "Listen at this address of this host until doctor with --peer ADDRESS has come from another one, "
                                + "at most for half of the time limit.")
        private String own;
    }

    @Option(
            names = "--port",
            paramLabel = "PORT",
            defaultValue = "" + RankInfo.DEFAULT_PORT,
            description = "The port of --peer and --accept-peer. Default: ${DEFAULT-VALUE}.")
    private int port;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            defaultValue = "60",
            description = "Time limit of the self-test, and of the test between hosts. Default: ${DEFAULT-VALUE}.")
    private int timeout;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        if (timeout < 1) {
            throw new ParameterException(spec.commandLine(), "--timeout must be at least 1: " + timeout);
        }
        if (pid != null && pid < 1) {
            throw new ParameterException(spec.commandLine(), "--pid must be at least 1: " + pid);
        }
        Choice choice = Choice.of(engine, library, System.getProperties(), SystemText.environment());
        Report report = new Doctor(Machine.here(), choice, selfTest())
                .examine(
                        title(),
                        noSelfTest ? Optional.empty() : Optional.of(Duration.ofSeconds(timeout)),
                        pid == null ? OptionalLong.empty() : OptionalLong.of(pid),
                        peer());
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(Printable.json(report.json()));
        } else {
            out.print(Printable.lines(report.text()));
        }
        out.flush();
        return report.exitCode();
    }

    private Optional<Peer> peer() {
        if (peer == null) {
            return Optional.empty();
        }
        if (port < 1 || port > 65535) {
            throw new ParameterException(spec.commandLine(), "--port must be from 1 to 65535: " + port);
        }
        if (SECRETS.stream()
                .allMatch(
                        name -> SystemText.environment().getOrDefault(name, "").isEmpty())) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--peer and --accept-peer need " + String.join(" or ", SECRETS) + ", equal on both hosts");
        }
        boolean accepts = peer.own != null;
        return Optional.of(new Peer(accepts ? peer.own : peer.host, port, accepts, Duration.ofSeconds(timeout)));
    }

    /** In this program. */
    private List<String> selfTest() {
        List<String> command = new ArrayList<>(SELF_TEST);
        command.add(0, spec.root().userObject().getClass().getName());
        return command;
    }

    private static String title() {
        return "nccl4j " + Version.number() + " on " + Loader.getPlatform() + ", Java "
                + System.getProperty("java.version") + ", " + System.getProperty("os.name") + " "
                + System.getProperty("os.version");
    }
}
