package io.github.nccl4j.tools;

import io.github.nccl4j.tools.analyze.AnalyzeCommand;
import io.github.nccl4j.tools.conformance.ConformanceCommand;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.launch.LauncherWatch;
import io.github.nccl4j.tools.launch.OutputWatch;
import io.github.nccl4j.tools.perf.GradientsCommand;
import io.github.nccl4j.tools.perf.PerfCommand;
import io.github.nccl4j.tools.perf.PlotCommand;
import io.github.nccl4j.tools.ras.RasCommand;
import io.github.nccl4j.tools.status.StatusCommand;
import io.github.nccl4j.tools.survival.SurvivalCommand;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/**
 * The command {@code nccl4j}. Exit codes: 0 success, 1 failure, 2 wrong arguments; {@code run} and {@code perf} return the exit
 * code of the first rank that failed.
 */
@Command(
        name = "nccl4j",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        description =
                "Runs samples and programs, one process per rank, measures collectives, and examines NCCL installations.",
        synopsisSubcommandLabel = "COMMAND",
        footer = {
            "",
            "Examples:",
            "  nccl4j run 01-all-reduce -n 4",
            "  nccl4j run 03 -n 2 --engine host",
            "  nccl4j run -n 4 -- java -jar app.jar",
            "  nccl4j status --watch",
            "  nccl4j perf all_reduce -np 2 -b 8 -e 1G -f 2",
            "  torchrun --no-python --nproc-per-node 2 nccl4j run 01-all-reduce",
            "  mpirun -np 4 nccl4j run 01-all-reduce"
        })
public final class Main implements Callable<Integer> {

    @Spec
    private CommandSpec spec;

    private Main() {}

    /**
     * Runs the command and ends this JVM with its exit code.
     *
     * @param args the arguments
     */
    public static void main(String[] args) {
        int code = CommandErrors.run(() -> {
            LauncherWatch.start();
            OutputWatch.start();
            return commandLine(args).execute(args);
        });
        System.out.flush();
        System.err.flush();
        System.exit(code);
    }

    /**
     * Creates the command line. If the arguments begin with the name of a command, it has only that command: picocli reads each
     * command's class by reflection, which would slow the start of every rank.
     *
     * @param args the arguments to be executed, or none for all commands
     * @return a new command line
     */
    static CommandLine commandLine(String... args) {
        Map<String, Supplier<Object>> commands = new LinkedHashMap<>();
        commands.put("run", () -> RunCommand.of(List.of(args)));
        commands.put("list", ListCommand::new);
        commands.put("check-header", CheckHeaderCommand::new);
        commands.put("doctor", DoctorCommand::new);
        commands.put("analyze", AnalyzeCommand::new);
        commands.put("status", StatusCommand::new);
        commands.put("ras", RasCommand::new);
        commands.put("explain", ExplainCommand::new);
        commands.put("perf", PerfCommand::new);
        commands.put("gradients", GradientsCommand::new);
        commands.put("plot", PlotCommand::new);
        commands.put("startup", StartupCommand::new);
        commands.put("conformance", ConformanceCommand::new);
        commands.put("survival", SurvivalCommand::new);
        commands.put("store", StoreCommand::new);
        if (args.length > 0 && commands.containsKey(args[0])) {
            commands.keySet().retainAll(Set.of(args[0]));
        }
        CommandLine nccl4j = new CommandLine(new Main());
        commands.forEach((name, command) -> nccl4j.addSubcommand(name, command.get()));
        // Accept "-n 2" although 2 is an alias of a sample.
        nccl4j.setAllowSubcommandsAsOptionParameters(true);
        return CommandErrors.install(nccl4j);
    }

    /** Without a command, prints the help. */
    @Override
    public Integer call() {
        spec.commandLine().usage(spec.commandLine().getOut());
        return CommandLine.ExitCode.OK;
    }
}
