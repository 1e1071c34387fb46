package io.github.nccl4j.tools.perf;

import com.google.gson.stream.JsonWriter;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Comparison with nccl-tests: runs one of its programs and this command alternately, with the same options, library and GPUs, and
 * compares their times by size. The variation between runs of nccl-tests determines if a difference is significant.
 */
final class SideBySide {
    private static final long LIMIT_MINUTES = 10;

    /** The columns of a measurement: time, two bandwidths and wrong elements; with -I four more. */
    static final int COLUMNS = 4;

    static final int COLUMNS_WITH_ITERATIONS = 8;

    /**
     * One of the two programs.
     *
     * @param environment variables to add to those of this process, or to replace them
     */
    record Program(List<String> command, Map<String, String> environment) {}

    /** A compared measurement: one size, type, reduction and root, out of place or in place. */
    private record Key(String columns, boolean inPlace) {
        long bytes() {
            return Long.parseLong(columns.substring(0, columns.indexOf(' ')));
        }
    }

    /** The times of one program, by run and cycle (-N). */
    static final class Runs {
        final List<List<Double>> cycles = new ArrayList<>();

        List<Double> medians() {
            return cycles.stream().map(SideBySide::median).toList();
        }

        /**
         * The 10th percentile of the cycles of all runs. On a machine that is slow for seconds at a time, both programs have
         * fast cycles, while their medians may fall into different phases.
         */
        double fast() {
            List<Double> sorted = cycles.stream().flatMap(List::stream).sorted().toList();
            return sorted.get((sorted.size() - 1) / 10);
        }
    }

    private record Times(Runs theirs, Runs ours) {}

    private final Collective collective;
    private final Path program;
    private final int rounds;
    private final int columns;
    private final Map<Key, Times> times = new LinkedHashMap<>();
    private final List<String> versions = new ArrayList<>();

    /**
     * Creates a comparison.
     *
     * @param columns the number of columns of a measurement; a row has one out of place and one in place
     */
    SideBySide(Collective collective, Path program, int rounds, int columns) {
        this.collective = collective;
        this.program = program;
        this.rounds = rounds;
        this.columns = columns;
    }

    /** Runs all rounds and prints the comparison; returns exit code 1 if ours is significantly slower in a row. */
    int run(Program theirs, Program ours) throws Exception {
        System.out.println("# theirs: " + String.join(" ", theirs.command));
        for (int round = 0; round < rounds; round++) {
            System.out.println("# round " + (round + 1) + " of " + rounds);
            // Alternate the order, so that a machine that warms up does not favor one program.
            boolean theirsFirst = round % 2 == 0;
            add(run(theirsFirst ? theirs : ours), theirsFirst);
            add(run(theirsFirst ? ours : theirs), !theirsFirst);
        }
        return print();
    }

    private static String run(Program program) throws IOException, InterruptedException {
        List<String> command = program.command;
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().putAll(program.environment);
        Path output = Files.createTempFile("nccl4j-perf", ".txt");
        try {
            Process process = ChildProcesses.start(builder.redirectOutput(output.toFile()));
            process.getOutputStream().close();
            if (!process.waitFor(LIMIT_MINUTES, TimeUnit.MINUTES)) {
                ChildProcesses.kill(process);
                throw new PerfException(command.get(0) + " ran for more than " + LIMIT_MINUTES + " minutes:\n"
                        + Files.readString(output));
            }
            if (process.exitValue() != 0) {
                throw new PerfException(
                        command + " exited with " + process.exitValue() + ":\n" + Files.readString(output));
            }
            return Files.readString(output);
        } finally {
            Files.delete(output);
        }
    }

    private void add(String table, boolean isTheirs) {
        for (String line : table.lines().toList()) {
            if (line.contains(" version ") && isTheirs && !versions.contains(line)) {
                versions.add(line);
                System.out.println(line);
            }
        }
        Map<Key, List<Double>> run = rows(table, columns);
        if (run.isEmpty()) {
            throw new PerfException((isTheirs ? program.toString() : "nccl4j perf") + " printed no results:\n" + table);
        }
        run.forEach((key, micros) -> {
            Times both = times.computeIfAbsent(key, k -> new Times(new Runs(), new Runs()));
            (isTheirs ? both.theirs() : both.ours()).cycles.add(micros);
        });
    }

    /** The times of a run; with -N it has several rows per size. */
    static Map<Key, List<Double>> rows(String table, int columns) {
        Map<Key, List<Double>> rows = new LinkedHashMap<>();
        for (String line : table.lines().toList()) {
            times(line, columns).forEach((key, micros) -> rows.computeIfAbsent(key, k -> new ArrayList<>())
                    .add(micros));
        }
        return rows;
    }

    /** The two times of a row, which ends with two measurements of {@code columns} columns each, the time first. */
    static Map<Key, Double> times(String line, int columns) {
        Map<Key, Double> found = new LinkedHashMap<>();
        String[] words = line.strip().split("\\s+");
        int first = words.length - 2 * columns;
        if (line.startsWith("#") || first < 4 || !words[0].chars().allMatch(Character::isDigit)) {
            return found;
        }
        for (int i : new int[] {first + 3, first + columns + 3}) {
            if (!words[i].equals("0") && !words[i].equals("N/A")) {
                throw new PerfException("wrong elements: " + line);
            }
        }
        String before = String.join(" ", Arrays.copyOf(words, first));
        found.put(new Key(before, false), Double.valueOf(words[first]));
        found.put(new Key(before, true), Double.valueOf(words[first + columns]));
        return found;
    }

    /** A row of the comparison. */
    private record Ratio(Key key, double theirs, double ours, double low, double high, double fast) {
        static Ratio of(Key key, Times times) {
            List<Double> theirs = times.theirs().medians();
            double median = median(theirs);
            return new Ratio(
                    key,
                    median,
                    median(times.ours().medians()),
                    Collections.min(theirs) / median,
                    Collections.max(theirs) / median,
                    times.ours().fast() / times.theirs().fast());
        }

        double value() {
            return ours / theirs;
        }

        /** False for 0 bytes, for which NCCL launches nothing; nccl4j benchmark measures the cost of such calls. */
        boolean counts() {
            return key.bytes() > 0;
        }

        /** True if ours is more than 5 % slower than theirs and slower than their slowest run. */
        boolean slower() {
            return counts() && value() > Math.max(1.05, high);
        }
    }

    static double median(List<Double> values) {
        List<Double> sorted = values.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }

    private List<Ratio> ratios() {
        List<Ratio> ratios = new ArrayList<>();
        times.forEach((key, both) -> {
            int theirs = both.theirs().cycles.size();
            int ours = both.ours().cycles.size();
            if (theirs != rounds || ours != rounds) {
                throw new PerfException("every run must print the same rows: '" + key.columns() + "' was printed by "
                        + theirs + " runs of nccl-tests and " + ours + " runs of nccl4j, in " + rounds + " rounds");
            }
            ratios.add(Ratio.of(key, both));
        });
        return ratios;
    }

    private int print() {
        List<Ratio> ratios = ratios();
        System.out.println("#");
        System.out.println("# Times in us, medians of " + rounds
                + " runs; ratio: ours to theirs; spread: fastest and slowest of their runs, to their median;"
                + " fast: ratio of the 10th percentiles of all cycles");
        System.out.printf(
                Locale.ROOT,
                "# %-44s  %9s  %9s  %6s  %13s  %5s%n",
                "size count type redop root",
                "theirs",
                "ours",
                "ratio",
                "spread",
                "fast");
        for (Ratio ratio : ratios) {
            System.out.printf(
                    Locale.ROOT,
                    "%-46s  %9.2f  %9.2f  %6.3f  %6.3f..%5.3f  %5.3f%s%n",
                    ratio.key().columns() + (ratio.key().inPlace() ? " in place" : ""),
                    ratio.theirs(),
                    ratio.ours(),
                    ratio.value(),
                    ratio.low(),
                    ratio.high(),
                    ratio.fast(),
                    ratio.slower() ? "  SLOWER" : "");
        }
        List<Ratio> counting = ratios.stream().filter(Ratio::counts).toList();
        if (counting.isEmpty()) {
            throw new PerfException("nothing to compare: with these sizes, " + collective.label()
                    + " has 0 bytes for each rank; choose larger sizes with -b and -e");
        }
        long slower = ratios.stream().filter(Ratio::slower).count();
        List<Double> values = counting.stream().map(Ratio::value).toList();
        List<Double> fast = counting.stream().map(Ratio::fast).toList();
        System.out.printf(
                Locale.ROOT,
                "# %s, from 1 byte on: median ratio %.3f, largest %.3f; fast %.3f, largest %.3f; slower than theirs by more than"
                        + " 5 %% and their spread: %d of %d%n",
                collective.label(),
                median(values),
                Collections.max(values),
                median(fast),
                Collections.max(fast),
                slower,
                values.size());
        return slower == 0 ? 0 : 1;
    }

    /** Writes all times to a JSON file, for further analysis. */
    void write(Path file, int ranks, String library, List<String> theirCommand, List<String> arguments)
            throws IOException {
        try (JsonWriter json = new JsonWriter(Files.newBufferedWriter(file))) {
            json.setIndent(" ");
            json.beginObject();
            json.name("time").value(LocalDateTime.now(ZoneId.systemDefault()).format(JsonFile.TIME));
            json.name("collective").value(collective.label());
            json.name("ranks").value(ranks);
            json.name("nccl_tests").beginArray();
            for (String line : versions) {
                json.value(line);
            }
            json.endArray();
            json.name("theirs").value(String.join(" ", theirCommand));
            json.name("ours").value("nccl4j " + String.join(" ", arguments));
            json.name("library").value(library);
            json.name("results").beginArray();
            for (Map.Entry<Key, Times> entry : times.entrySet()) {
                json.beginObject();
                json.name("size").value(entry.getKey().bytes());
                json.name("row").value(entry.getKey().columns());
                json.name("in_place").value(entry.getKey().inPlace());
                Times both = entry.getValue();
                write(json, "theirs_us", both.theirs().medians());
                write(json, "ours_us", both.ours().medians());
                json.name("theirs_fast_us").value(both.theirs().fast());
                json.name("ours_fast_us").value(both.ours().fast());
                json.endObject();
            }
            json.endArray();
            json.endObject();
        }
    }

    private static void write(JsonWriter json, String name, List<Double> values) throws IOException {
        json.name(name).beginArray();
        for (double value : values) {
            json.value(value);
        }
        json.endArray();
    }
}
