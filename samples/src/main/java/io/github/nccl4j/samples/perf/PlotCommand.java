package io.github.nccl4j.samples.perf;

import java.io.IOException;
import java.nio.file.Files;
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
            "The name of the picture says how it is written: SVG is written everywhere; PNG needs a Java with java.desktop, "
                    + "which a bundle does not have, and fonts.",
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
            paramLabel = "PICTURE",
            required = true,
            description = "The picture, whose name ends with .svg or .png.")
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
        try {
            requirePicture("-o", output);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        draw(title, files, inPlace, output);
        return 0;
    }

    /** Throws if the file of an option has no name of a picture, or no folder. */
    static void requirePicture(String option, Path picture) {
        if (!isSvg(picture) && !picture.toString().endsWith(".png")) {
            throw new IllegalArgumentException(option + " must end with .svg or .png: " + picture);
        }
        Settings.requireFolder(option, picture);
    }

    private static boolean isSvg(Path picture) {
        return picture.toString().endsWith(".svg");
    }

    /** Draws files of results. */
    static void draw(String title, List<Path> files, boolean inPlace, Path output) throws IOException {
        List<ResultFile> results = new ArrayList<>();
        for (Path file : files) {
            results.addAll(ResultFile.readAll(file, inPlace));
        }
        if (isSvg(output)) {
            Files.writeString(output, SvgPlot.of(title, results));
        } else if (ModuleLayer.boot().findModule("java.desktop").isEmpty()) {
            throw new IOException("a PNG needs java.desktop, which this Java lacks: write an SVG instead of " + output);
        } else {
            Plot.write(title, results, output);
        }
    }
}
