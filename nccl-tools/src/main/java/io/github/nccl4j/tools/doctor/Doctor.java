package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.tools.launch.JavaCommand;
import io.github.nccl4j.tools.launch.Launcher;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Examines a machine for problems with NCCL: the library, GPUs, network, limits, and communication between ranks.
 *
 * <p>Child processes with a deadline make all calls of native code, so that a broken library or driver cannot crash or block this
 * process. An instance is used once, in any thread.
 */
public final class Doctor {
    /** Probes may crash; suppress the error file and the core dump. */
    static final List<String> NO_CRASH_FILES = List.of("-XX:ErrorFile=/dev/null", "-XX:-CreateCoredumpOnCrash");

    /** Long enough for a driver that has to initialize its GPUs. */
    private static final Duration PROBE_LIMIT = Duration.ofSeconds(60);

    private final Machine machine;
    private final Choice choice;
    private final List<String> selfTest;

    /**
     * Creates an examination.
     *
     * @param machine the machine to examine
     * @param choice the library to examine
     * @param selfTest the command of a self-test rank: a main class and its arguments
     */
    public Doctor(Machine machine, Choice choice, List<String> selfTest) {
        this.machine = machine;
        this.choice = choice;
        this.selfTest = List.copyOf(selfTest);
    }

    /**
     * Runs all checks.
     *
     * @param title the first line of the report
     * @param selfTestLimit the time limit of the self-test, or empty to omit the self-test
     * @param pid the id of a process to examine in addition, or empty
     * @param peer another host to connect to, or empty
     * @return the report
     */
    public Report examine(String title, Optional<Duration> selfTestLimit, OptionalLong pid, Optional<Peer> peer) {
        ProbeAnswer library = probe("library");
        ProbeAnswer gpus = probe("gpus");
        String count = gpus.first("count");
        int gpuCount = count.isEmpty() || !gpus.death().isEmpty() ? 0 : Integer.parseInt(count);

        List<Check> checks = new ArrayList<>();
        checks.add(new LibraryCheck(machine, library, choice));
        pid.ifPresent(process -> checks.add(new ProcessCheck(machine, process)));
        checks.add(new GpuCheck(machine, library, gpus, gpuCount > 1 ? links() : Optional.empty()));
        checks.add(new RdmaCheck(machine, gpuCount > 0));
        checks.add(new NetworkCheck(machine));
        checks.add(new SettingsCheck(machine));
        checks.add(new LimitsCheck(machine));
        checks.add(new ContainerCheck(machine));
        checks.add(new LauncherCheck(machine));
        selfTestLimit.ifPresent(limit -> checks.add(new SelfTest(this::runRanks, choice, library, gpuCount, limit)));
        peer.ifPresent(other -> checks.add(new PeerCheck(machine, other)));
        return new Report(
                title,
                checks.stream()
                        .map(check -> new Report.Section(check.name(), check.run()))
                        .toList());
    }

    private ProbeAnswer probe(String subject) {
        List<String> command = JavaCommand.of(NO_CRASH_FILES, Probe.class.getName(), List.of(subject));
        return ProbeAnswer.of(machine.commands().run(command, choice.environment(), PROBE_LIMIT));
    }

    private Optional<LinkTable> links() {
        Commands.Result result = machine.commands().run(List.of("nvidia-smi", "topo", "-m"), Map.of(), PROBE_LIMIT);
        return result.code() == 0 ? LinkTable.of(result.out()) : Optional.empty();
    }

    private int runRanks(int count, Map<String, String> environment, Duration limit, PrintStream out)
            throws IOException, InterruptedException {
        List<String> command = JavaCommand.of(List.of(), selfTest.get(0), selfTest.subList(1, selfTest.size()));
        return new Launcher(command, count, environment, limit, out, out).run();
    }
}
