package io.github.nccl4j.samples;

import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.samples.doctor.Choice;
import io.github.nccl4j.samples.doctor.Doctor;
import io.github.nccl4j.samples.doctor.Machine;
import io.github.nccl4j.samples.doctor.Report;
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

/** {@code nccl4j doctor}: why NCCL does not work here. */
@Command(
        name = "doctor",
        description = {
            "Looks for what keeps NCCL from working on this machine, and says what to do about it.",
            "",
            "The library and why it was chosen, GPUs and their links, RDMA, network interfaces, settings, limits, the "
                    + "container, the launcher, and a test with ranks of their own processes. Works without a GPU and without "
                    + "NCCL, and takes the library that an application would take. Exit code 0 if there is no problem "
                    + "(warnings are none), 1 if there is one.",
            ""
        })
final class DoctorCommand implements Callable<Integer> {

    /** Small, and still more than one chunk of NCCL's protocols. */
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
            description = "The library to look at. Default: -Dnccl4j.library or NCCL4J_LIBRARY.")
    private String library;

    @Option(names = "--pid", paramLabel = "PID", description = "A running process: which copies of NCCL it has loaded.")
    private Long pid;

    @Option(names = "--no-self-test", description = "Start no ranks.")
    private boolean noSelfTest;

    @Option(
            names = "--timeout",
            paramLabel = "SECONDS",
            defaultValue = "60",
            description = "How long the self test may take. Default: ${DEFAULT-VALUE}.")
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
            out.println(report.json());
        } else {
            out.print(report.text());
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
