package io.github.nccl4j.tools.perf;

import io.github.nccl4j.tools.launch.JvmOptionConsumer;
import io.github.nccl4j.tools.launch.LaunchOptions;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** The launch options with names that do not collide with -n and -J of nccl-tests. */
final class PerfLaunch extends LaunchOptions {
    @Option(
            names = {"-np", "--processes"},
            paramLabel = "N",
            description = "Number of processes to start. Default: as many as the GPUs allow, or 2 on the host engine.")
    private Integer processes;

    @Option(
            names = "--jvm",
            paramLabel = "OPTION",
            parameterConsumer = JvmOptionConsumer.class,
            description = "An option for each process's JVM, such as --jvm=-Xmx2g. May be repeated.")
    private List<String> jvmOptions = new ArrayList<>();

    private int ranksPerProcess = 1;

    @Override
    protected Integer requestedProcesses() {
        return processes;
    }

    @Override
    protected String processesOption() {
        return "-np";
    }

    @Override
    protected List<String> jvmOptions() {
        return jvmOptions;
    }

    @Override
    protected int ranksPerProcess() {
        return ranksPerProcess;
    }

    void setRanksPerProcess(int count) {
        ranksPerProcess = count;
    }

    /** Rank 0 prints a table that other programs read. */
    @Override
    protected boolean isPrefixed() {
        return false;
    }
}
