package io.github.nccl4j.tools.perf;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
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
            description = "The picture: a name that ends with .svg.")
    private Path output;

    @Option(names = "--in-place", description = "Show the in-place results.")
    private boolean inPlace;

    @Option(
            names = "--ratio",
            description =
                    "Show the ratio of our times to those of nccl-tests, from files of nccl4j perf --against. Of several "
                            + "files with one collective and number of ranks, the last one that has a size counts.")
    private boolean ratio;

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
        String shown = title != null ? title : title(files);
        if (ratio) {
            Map<String, Map<Long, Double>> ratios = new LinkedHashMap<>();
            for (Path file : files) {
                ResultFile.Ratios read = ResultFile.readRatios(file, inPlace);
                ratios.computeIfAbsent(read.name(), name -> new TreeMap<>()).putAll(read.bySize());
            }
            Files.writeString(output, SvgPlot.ofRatios(shown, ratios));
        } else {
            draw(shown, files, inPlace, output);
        }
        return 0;
    }

    /** Throws if the name of a picture has another suffix, or if its folder does not exist. */
    static void requirePicture(String option, Path picture) {
        if (!picture.toString().endsWith(".svg")) {
            throw new IllegalArgumentException(option + " must end with .svg: " + picture);
        }
        Settings.requireFolder(option, picture);
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
        Files.writeString(output, SvgPlot.of(title, results));
    }
}
