package io.github.nccl4j.samples.doctor;

import io.github.nccl4j.samples.launch.JavaCommand;
import io.github.nccl4j.samples.launch.Launcher;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Looks at this machine as NCCL would: the library, GPUs, network, limits, and whether ranks can work together.
 *
 * <p>Native code is called in processes of their own, each with a deadline, so that nothing that is broken here can crash
 * or hang this one. An object may be used once, in any thread.
 */
public final class Doctor {
    /** A crash is expected here, and is to leave nothing behind. */
    private static final List<String> NO_TRACES = List.of("-XX:ErrorFile=/dev/null", "-XX:-CreateCoredumpOnCrash");

    /** A driver that wakes up GPUs may take this long. */
    private static final Duration PROBE_LIMIT = Duration.ofSeconds(60);

    private final Machine machine;
    private final Choice choice;
    private final List<String> selfTest;

    /**
     * Prepares the examination.
     *
     * @param machine what is looked at
     * @param choice which library is looked at
     * @param selfTest a main class and its arguments that make a process one rank of a self test
     */
    public Doctor(Machine machine, Choice choice, List<String> selfTest) {
        this.machine = machine;
        this.choice = choice;
        this.selfTest = List.copyOf(selfTest);
    }

    /**
     * Looks at everything.
     *
     * @param title the first line of the report
     * @param selfTestLimit how long the self test may take; empty for none
     * @param pid a process to look at besides; empty for none
     * @return what was found
     */
    public Report examine(String title, Optional<Duration> selfTestLimit, OptionalLong pid) {
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
        selfTestLimit.ifPresent(limit -> checks.add(new SelfTest(this::ranks, choice, library, gpuCount, limit)));
        return new Report(
                title,
                checks.stream()
                        .map(check -> new Report.Section(check.name(), check.run()))
                        .toList());
    }

    private ProbeAnswer probe(String what) {
        List<String> command = JavaCommand.of(NO_TRACES, Probe.class.getName(), List.of(what));
        return ProbeAnswer.of(machine.commands().run(command, choice.environment(), PROBE_LIMIT));
    }

    private Optional<LinkTable> links() {
        Commands.Result result = machine.commands().run(List.of("nvidia-smi", "topo", "-m"), Map.of(), PROBE_LIMIT);
        return result.code() == 0 ? LinkTable.of(result.out()) : Optional.empty();
    }

    private int ranks(int count, Map<String, String> environment, Duration limit, PrintStream out)
            throws IOException, InterruptedException {
        List<String> command = JavaCommand.of(List.of(), selfTest.get(0), selfTest.subList(1, selfTest.size()));
        return new Launcher(command, count, environment, limit, out, out).run();
    }
}
