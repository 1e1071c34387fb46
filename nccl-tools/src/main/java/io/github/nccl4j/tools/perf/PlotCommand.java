package io.github.nccl4j.tools.perf;

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

/** {@code nccl4j plot}: draws files of results in one picture. */
@Command(
        name = "plot",
        sortOptions = false,
        description = {
            "Draws bus bandwidth and time over size: a line for each result file of nccl4j perf -J or nccl-tests, two for a "
                    + "file of nccl4j perf --against, and one for each program of a file of nccl4j benchmark-host.",
            "",
            "The name of the picture determines its format. SVG has no requirements; PNG needs fonts and a Java with "
                    + "java.desktop, which the bundle does not have.",
            ""
        })
public final class PlotCommand implements Callable<Integer> {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Parameters(paramLabel = "FILE", arity = "1..*", description = "Result files.")
    private List<Path> files;

    @Option(
            names = {"-o", "--output"},
            paramLabel = "PICTURE",
            required = true,
            description = "The picture: a name that ends with .svg or .png.")
    private Path output;

    @Option(names = "--in-place", description = "Show the in-place results.")
    private boolean inPlace;

    @Option(
            names = "--title",
            paramLabel = "TEXT",
            description = {
                "Title of the picture.",
                "Default: the properties that all files share, of collective, ranks, device, NCCL and day."
            })
    private String title;

    @Spec
    private CommandSpec spec;

    /** For picocli. */
    public PlotCommand() {}

    @Override
    public Integer call() throws IOException {
        try {
            requirePicture("-o", output);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        draw(title != null ? title : title(files), files, inPlace, output);
        return 0;
    }

    /** Throws if the name of a picture has no known suffix, or if its folder does not exist. */
    static void requirePicture(String option, Path picture) {
        if (!isSvg(picture) && !picture.toString().endsWith(".png")) {
            throw new IllegalArgumentException(option + " must end with .svg or .png: " + picture);
        }
        Settings.requireFolder(option, picture);
    }

    private static boolean isSvg(Path picture) {
        return picture.toString().endsWith(".svg");
    }

    /** The common properties of the files. */
    static String title(List<Path> files) throws IOException {
        List<String> common = ResultFile.subject(files.get(0));
        for (Path file : files) {
            common.retainAll(ResultFile.subject(file));
        }
        return String.join(", ", common);
    }

    /** Draws the results in files. */
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
