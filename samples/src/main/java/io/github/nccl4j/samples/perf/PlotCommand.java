package io.github.nccl4j.samples.perf;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nccl4j plot}: several files of results in one picture. */
@Command(
        name = "plot",
        sortOptions = false,
        description = {
            "Draws bus bandwidth and time over size: a line for each file of results of nccl4j perf -J or of nccl-tests, two",
            "for one of nccl4j perf --against.",
            "",
            "Needs a Java with java.desktop, which a bundle does not have: carry the files home.",
            ""
        })
public final class PlotCommand implements Callable<Integer> {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Parameters(paramLabel = "FILE", arity = "1..*", description = "Files of results.")
    private List<Path> files;

    @Option(
            names = {"-o", "--output"},
            paramLabel = "PNG",
            required = true,
            description = "The picture.")
    private Path output;

    @Option(names = "--in-place", description = "Show the results in place.")
    private boolean inPlace;

    @Option(names = "--title", paramLabel = "TEXT", defaultValue = "", description = "Above the picture.")
    private String title;

    @Spec
    private CommandSpec spec;

    /** For the command line. */
    public PlotCommand() {}

    @Override
    public Integer call() throws IOException {
        if (!output.toString().endsWith(".png")) {
            throw new ParameterException(spec.commandLine(), "-o must end with .png: " + output);
        }
        draw(title, files, inPlace, output);
        return 0;
    }

    /** Draws files of results. */
    static void draw(String title, List<Path> files, boolean inPlace, Path output) throws IOException {
        if (ModuleLayer.boot().findModule("java.desktop").isEmpty()) {
            throw new IOException("this Java has no java.desktop, and can't draw " + output
                    + ": take the files of results (-J) to another machine, and run nccl4j plot there");
        }
        List<ResultFile> results = new ArrayList<>();
        for (Path file : files) {
            results.addAll(ResultFile.readAll(file, inPlace));
        }
        Plot.write(title, results, output);
    }
}
