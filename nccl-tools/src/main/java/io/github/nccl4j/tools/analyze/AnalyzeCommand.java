package io.github.nccl4j.tools.analyze;

import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.support.Printable;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nccl4j analyze}: names the rank and the call that made a job fail, hang or run slowly. */
@Command(
        name = "analyze",
        sortOptions = false,
        description = {
            "Names the rank and the call that made a job fail, hang or run slowly.",
            "",
            "Reads the files that the flight recorders of all ranks wrote to a folder: at a failure, if NCCL4J_RECORDER_DUMP or "
                    + "-Dnccl4j.recorder.dump names it, or by FlightRecorder.dumpAll. Also reads dumps of torch's flight "
                    + "recorder in JSON, whose names end with the rank. Files may be missing, cut off or unreadable: the report names "
                    + "them, and compares the others.",
            "",
            "The exit code is 0 if nothing was found, 1 if there is a finding, and 2 if the folder has no record that can be read.",
            ""
        })
public final class AnalyzeCommand implements Callable<Integer> {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Parameters(paramLabel = "FOLDER", description = "The folder with the files of all ranks.")
    private Path folder;

    @Option(names = "--json", description = "Print a JSON object instead of text.")
    private boolean json;

    @Option(
            names = "--html",
            paramLabel = "FILE",
            description = "Write a page that shows the operations of all ranks over time.")
    private Path html;

    @Option(
            names = "--perfetto",
            paramLabel = "FILE",
            description = "Write the operations in Chrome's trace format, for ui.perfetto.dev.")
    private Path perfetto;

    @Option(
            names = "--late",
            paramLabel = "MS",
            defaultValue = "200",
            description =
                    "Delay in milliseconds from which a rank counts as late. The recorder's times have a resolution of "
                            + "100 ms. Default: ${DEFAULT-VALUE}.")
    private int late;

    @Spec
    private CommandSpec spec;

    /** For picocli. */
    public AnalyzeCommand() {}

    @Override
    public Integer call() throws IOException {
        if (late < 1) {
            throw new ParameterException(spec.commandLine(), "--late must be at least 1: " + late);
        }
        if (!Files.isDirectory(folder)) {
            throw new ParameterException(spec.commandLine(), "no such folder: " + folder);
        }
        RecordFolder records;
        try {
            records = RecordFolder.read(folder);
        } catch (IOException unusable) {
            spec.commandLine().getErr().println("nccl4j: " + Printable.lines(CommandErrors.reason(unusable)));
            return ExitCode.USAGE;
        }
        Analysis analysis = Analysis.of(records, late * 1000L);
        PrintWriter out = spec.commandLine().getOut();
        out.print(json ? JsonReport.of(analysis) + "\n" : TextReport.of(analysis));
        out.flush();
        if (html != null) {
            Files.writeString(html, HtmlPage.of(analysis));
        }
        if (perfetto != null) {
            TraceEvents.write(analysis, perfetto);
        }
        return analysis.exitCode();
    }
}
