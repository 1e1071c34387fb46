package io.github.nccl4j.tools;

import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.tools.doctor.Choice;
import io.github.nccl4j.tools.doctor.Doctor;
import io.github.nccl4j.tools.doctor.Machine;
import io.github.nccl4j.tools.doctor.Report;
import io.github.nccl4j.tools.support.Printable;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import org.bytedeco.javacpp.Loader;
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
    private static final List<String> SELF_TEST = List.of(
            Main.class.getName(),
            "run",
            "01-all-reduce",
            "-e",
            "4M",
            "-f",
            "8",
            "-w",
            "1",
            "-i",
            "2",
            "--init-timeout",
            "30");

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

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            defaultValue = "60",
            description = "Time limit of the self-test. Default: ${DEFAULT-VALUE}.")
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
        Report report = new Doctor(Machine.here(), choice, SELF_TEST)
                .examine(
                        title(),
                        noSelfTest ? Optional.empty() : Optional.of(Duration.ofSeconds(timeout)),
                        pid == null ? OptionalLong.empty() : OptionalLong.of(pid));
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(Printable.json(report.json()));
        } else {
            out.print(Printable.lines(report.text()));
        }
        out.flush();
        return report.exitCode();
    }

    private static String title() {
        return "nccl4j " + Main.Version.number() + " on " + Loader.getPlatform() + ", Java "
                + System.getProperty("java.version") + ", " + System.getProperty("os.name") + " "
                + System.getProperty("os.version");
    }
}
