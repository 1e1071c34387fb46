package io.github.nccl4j.examples;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.DoubleStream;

/**
 * Runs each example and its counterpart in Python in turns on this machine, and prints a table of what both needed, as Markdown. Both
 * check their results.
 */
public final class BesidePython {
    private static final String USAGE = """
            Runs each example and its counterpart in Python in turns on this machine, and prints a table of what both needed.

              -n N                 Ranks. Default: 2.
              -r N                 Turns. Default: 5.
              --sizes laptop|gpu   Sizes of the jobs. Default: laptop.
              --jobs NAMES         Examples, separated by commas. Default: all.
              --python PATH        A Python that has PyTorch. Default: python3.
              --scripts FOLDER     The programs in Python. Default: examples/src/main/python.
              --java PATH          The Java that runs the examples. Default: the one that runs this.
              --class-path PATH    Of the examples and nccl-tools. Default: that of this program.
              --java-options TEXT  More options of Java, separated by blanks.

            Properties of this program whose names begin with nccl4j. or org.bytedeco. are passed on to the examples.
            """;

    private static final int TIMEOUT_SECONDS = 300;

    /** An example, and its arguments for two processors and for GPUs. */
    private record Job(String name, String laptop, String gpu) {}

    private static final List<Job> JOBS = List.of(
            new Job("ring-attention", "-s 2048 -u 10 -i 20", "-s 32768 -u 20 -i 50"),
            new Job("tensor-parallel", "-t 64 -w 256 -l 4", "-t 200 -w 4096 -l 16"),
            new Job("experts", "-t 1024 -w 256 -u 10 -i 20", "-t 4096 -w 2048 -u 20 -i 50"),
            new Job("data-parallel", "-q 1 -s 60 -u 20 -w 512 -l 2 -b 128", "-q 1 -s 70 -u 20 -w 4096 -l 4 -b 2048"),
            new Job("sharded-optimizer", "-s 60 -u 20 -w 512 -l 2 -b 128", "-s 70 -u 20 -w 4096 -l 4 -b 2048"));

    /** The names of the figures, and where they are in the output; not all machines have all. */
    private static final Map<String, Pattern> FIGURES = new LinkedHashMap<>();

    static {
        FIGURES.put("step, ms", Pattern.compile("(\\S+) ms a step of"));
        FIGURES.put("start to first step, s", Pattern.compile("first step (\\S+) s after"));
        FIGURES.put("peak memory, MiB", Pattern.compile("peak memory (\\S+) MiB"));
        FIGURES.put("memory of the GPU in use, MiB", Pattern.compile("(\\S+) MiB of the GPU"));
    }

    private static final Map<String, String> OPTIONS = new HashMap<>(Map.of(
            "-n", "2",
            "-r", "5",
            "--sizes", "laptop",
            "--jobs", "",
            "--python", "python3",
            "--scripts", "examples/src/main/python",
            "--java", Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--class-path", System.getProperty("java.class.path"),
            "--java-options", ""));

    private BesidePython() {}

    public static void main(String[] args) throws IOException, InterruptedException {
        for (int i = 0; i < args.length; i += 2) {
            if (!OPTIONS.containsKey(args[i]) || i + 1 == args.length) {
                boolean asked = args[i].equals("--help");
                System.out.print(asked ? USAGE : "no such option, or no value: " + args[i] + "\n");
                System.exit(asked ? 0 : 2);
            }
            OPTIONS.put(args[i], args[i + 1]);
        }
        List<String> names = words(OPTIONS.get("--jobs").replace(',', ' '));
        List<String> rows = new ArrayList<>();
        boolean failed = false;
        for (Job job : JOBS) {
            if (names.isEmpty() || names.contains(job.name)) {
                try {
                    rows.addAll(compare(job));
                } catch (IllegalStateException | IOException e) {
                    System.out.println("# " + job.name + ": " + e.getMessage());
                    failed = true;
                }
            }
        }
        System.out.println("\n| example | | Java | Python | Java / Python |\n|---|---|---:|---:|---:|");
        rows.forEach(System.out::println);
        System.exit(failed ? 1 : 0);
    }

    private static List<String> compare(Job job) throws IOException, InterruptedException {
        List<String> arguments = words(OPTIONS.get("--sizes").equals("gpu") ? job.gpu : job.laptop);
        List<String> java = new ArrayList<>(List.of(OPTIONS.get("--java")));
        System.getProperties().stringPropertyNames().stream()
                .filter(name -> name.startsWith("nccl4j.") || name.startsWith("org.bytedeco."))
                .forEach(name -> java.add("-D" + name + "=" + System.getProperty(name)));
        java.addAll(words(OPTIONS.get("--java-options")));
        java.addAll(List.of("-cp", OPTIONS.get("--class-path"), "io.github.nccl4j.tools.Main", "run", job.name));
        java.addAll(List.of("-n", OPTIONS.get("-n")));
        java.addAll(arguments);
        String script = job.name.replace('-', '_') + ".py";
        List<String> python = new ArrayList<>(List.of(OPTIONS.get("--python"), "-m", "torch.distributed.run"));
        python.addAll(List.of("--nproc-per-node", OPTIONS.get("-n")));
        python.add(Path.of(OPTIONS.get("--scripts"), script).toString());
        python.addAll(arguments);
        List<String> ofJava = new ArrayList<>();
        List<String> ofPython = new ArrayList<>();
        for (int turn = 0; turn < Integer.parseInt(OPTIONS.get("-r")); turn++) {
            ofJava.add(run(java));
            ofPython.add(run(python));
        }
        List<String> rows = new ArrayList<>();
        FIGURES.forEach((name, pattern) -> {
            double[] here =
                    ofJava.stream().mapToDouble(text -> value(pattern, text)).toArray();
            double[] there =
                    ofPython.stream().mapToDouble(text -> value(pattern, text)).toArray();
            double[] ratios = new double[here.length];
            for (int i = 0; i < ratios.length; i++) {
                ratios[i] = here[i] / there[i];
            }
            if (!Double.isNaN(ratios[0])) {
                rows.add(String.join(" | ", "| " + job.name, name, spread(here), spread(there), spread(ratios) + " |"));
            }
        });
        return rows;
    }

    private static List<String> words(String text) {
        return text.isBlank() ? List.of() : List.of(text.strip().split("\\s+"));
    }

    /** Runs a program, and returns its output, whose figures it also prints. */
    private static String run(List<String> command) throws IOException, InterruptedException {
        Path file = Files.createTempFile("example", ".txt");
        try {
            ProcessBuilder builder =
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(file.toFile());
            // The time until the first step includes that of the launchers.
            builder.environment().put("EXAMPLE_START", Double.toString(System.currentTimeMillis() / 1e3));
            // As torchrun does unless it is set, but without a warning.
            builder.environment().put("OMP_NUM_THREADS", "1");
            Process process = builder.start();
            if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                process.descendants().forEach(ProcessHandle::destroyForcibly);
                process.destroyForcibly().waitFor();
            }
            String text = Files.readString(file);
            if (process.exitValue() != 0) {
                throw new IllegalStateException(
                        "exit code " + process.exitValue() + " of " + String.join(" ", command) + "\n" + text);
            }
            String name = command.contains("run") ? "Java" : "Python";
            text.lines()
                    .filter(line -> line.matches(".*(rank 0: | a step of |with PyTorch ).*"))
                    .forEach(line -> System.out.println("# " + name + ": " + line));
            return text;
        } finally {
            Files.delete(file);
        }
    }

    /** Returns a figure, or NaN if the output does not have it. */
    private static double value(Pattern pattern, String text) {
        Matcher matcher = pattern.matcher(text);
        return matcher.find() ? Double.parseDouble(matcher.group(1)) : Double.NaN;
    }

    /** The median, the least and the greatest value. */
    private static String spread(double[] values) {
        double[] sorted = DoubleStream.of(values).sorted().toArray();
        int middle = sorted.length / 2;
        double median = sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
        int digits = median < 100 ? 2 : 0;
        String number = "%." + digits + "f";
        return String.format(
                Locale.ROOT,
                number + " (" + number + " to " + number + ")",
                median,
                sorted[0],
                sorted[sorted.length - 1]);
    }
}
