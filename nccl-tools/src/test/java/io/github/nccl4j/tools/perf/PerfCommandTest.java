package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.ToolsJar;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** Runs the command as users do, on the host engine. */
@Timeout(600)
class PerfCommandTest {
    @TempDir
    Path folder;

    private record Outcome(int code, List<String> lines) {
        List<String> rows() {
            return lines.stream().filter(line -> !line.startsWith("#")).toList();
        }
    }

    private static Outcome run(String arguments) throws IOException, InterruptedException {
        return run(List.of(arguments.split(" ")));
    }

    private static Outcome run(List<String> arguments) throws IOException, InterruptedException {
        return run(arguments, Map.of());
    }

    private static Outcome run(List<String> arguments, Map<String, String> environment)
            throws IOException, InterruptedException {
        List<String> words = new ArrayList<>(List.of("perf"));
        words.addAll(arguments);
        words.addAll(List.of("--engine", "host"));
        ProcessBuilder command = ToolsJar.command(words);
        command.environment().putAll(environment);
        Process process = ChildProcesses.start(command);
        List<String> lines = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                .lines()
                .toList();
        return new Outcome(process.waitFor(), lines);
    }

    /** Counts the rows, and asserts that each has 13 columns and no wrong elements. */
    private static void assertMeasured(String arguments, int rows, Outcome outcome) {
        String text = String.join("\n", outcome.lines());
        assertEquals(0, outcome.code(), text);
        assertEquals(rows, outcome.rows().size(), text);
        assertTrue(outcome.lines().contains("# Out of bounds values : 0 OK"), text);
        for (String row : outcome.rows()) {
            // The column of the reduction is empty for hypercube.
            String[] columns = row.strip().split("\\s+");
            int first = arguments.startsWith("hypercube") ? 4 : 5;
            assertEquals("0", columns[first + 3], text);
            assertTrue(Double.parseDouble(columns[first]) > 0, text);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "all_reduce -np 2 -b 8 -e 2M -f 64 -n 2 | 4",
                "all_reduce -np 2 -b 8 -e 2M -f 64 -n 2 -G 3 | 4",
                "reduce -np 3 -b 1K -e 1K -n 2 -r -1 -u 3 -a 3 | 3",
                "alltoallv -np 2 -g 2 -b 64K -e 64K -n 2 --spread 0.5 | 1",
                "gather -np 2 -b 1K -e 1K -n 2 -r 1 | 1",
                "hypercube -np 4 -b 1K -e 1K -n 2 | 1",
                "all_reduce -np 2 -t 2 -g 2 -p 1 -R 2 -b 1K -e 1K -n 2 | 1",
                "scatter -np 2 -p 1 -b 1K -e 1K -n 2 -I 1 -z 1 -D 0 -M 0 | 1",
            })
    void measuresWithoutWrongElementsInProcesses(String arguments, int rows) throws Exception {
        assertMeasured(arguments, rows, run(arguments + " --jit-warmup 0"));
    }

    @Test
    void resultFileHasTheFieldsOfNcclTests() throws Exception {
        Path file = folder.resolve("results.json");
        Path picture = folder.resolve("results.svg");
        assertEquals(
                0,
                run("alltoall -np 2 -b 1K -e 2K -f 2 -n 3 -J " + file + " --plot " + picture)
                        .code());
        assertTrue(Files.readString(picture).contains("<polyline"), "--plot draws them");
        assertEquals(
                0, run("alltoall -np 2 -b 1K -e 2K -f 2 -n 3 -c 0 -J " + file).code());
        assertTrue(Files.exists(Path.of(file + ".0")), "a file that is there is kept");
        JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
        assertEquals(3, json.get("version").getAsInt());
        JsonObject config = json.getAsJsonObject("config");
        assertEquals(2, config.get("step_factor").getAsInt());
        JsonArray devices = config.getAsJsonArray("devices");
        assertEquals(2, devices.size());
        assertEquals(1, devices.get(1).getAsJsonObject().get("rank").getAsInt());
        JsonArray results = json.getAsJsonArray("results");
        assertEquals(2, results.size());
        JsonObject second = results.get(1).getAsJsonObject();
        assertEquals(2048, second.get("size").getAsLong());
        assertEquals(256, second.get("count").getAsLong());
        JsonObject outOfPlace = second.getAsJsonObject("out_of_place");
        double micros = outOfPlace.get("time").getAsDouble();
        assertEquals(2048 / micros / 1e3, outOfPlace.get("alg_bw").getAsDouble(), 1e-9);
        assertEquals(1024 / micros / 1e3, outOfPlace.get("bus_bw").getAsDouble(), 1e-9);
        assertEquals(0, outOfPlace.get("nwrong").getAsInt());
        assertTrue(second.getAsJsonObject("in_place").get("nwrong").isJsonNull());
        assertEquals("true", json.getAsJsonObject("out_of_bounds").get("okay").getAsString());
    }

    /** An iteration in which a rank is late by a second, and the other iterations. */
    private static final int LATE = 3;

    private static final int ITERATIONS = 5;
    private static final double HALF_A_SECOND = 5e5;

    /** Measures a size, with a delay on rank 1 in one out-of-place iteration; returns the result in the file. */
    private JsonObject late(String collective, String call, String options) throws Exception {
        Path file = Files.createTempFile(folder, "late", ".json");
        Files.delete(file);
        String arguments =
                collective + " -b 1K -e 1K -n " + ITERATIONS + " --jit-warmup 0 -I 1 -J " + file + " " + options;
        // Two calls precede the iterations: a warm-up, and one that synchronizes the ranks.
        String fault = "delay=1,rank=1,call=" + call + ",op=" + (2 + LATE + 1);
        Outcome outcome = run(List.of(arguments.split(" ")), Map.of("NCCL4J_HOST_FAULT", fault));
        String text = String.join("\n", outcome.lines());
        assertEquals(0, outcome.code(), text);
        assertEquals(5 + 2 * 8, outcome.rows().get(0).strip().split("\\s+").length, text);
        return JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    }

    private static JsonObject result(JsonObject json) {
        return json.getAsJsonArray("results").get(0).getAsJsonObject();
    }

    private static double[] numbers(JsonElement array) {
        return StreamSupport.stream(array.getAsJsonArray().spliterator(), false)
                .mapToDouble(JsonElement::getAsDouble)
                .toArray();
    }

    @Test
    void reportsTheTimeOfEachIteration() throws Exception {
        JsonObject json = late("all_reduce -np 2", "AllReduce", "-p 1 -K " + (LATE + 1));
        JsonObject config = json.getAsJsonObject("config");
        assertEquals("true", config.get("per_iter_timing").getAsString());
        assertEquals(LATE + 1, config.get("per_iter_skip").getAsInt());
        assertEquals("true", config.get("parallel_init").getAsString());
        JsonObject iterations = result(json).getAsJsonObject("out_of_place_per_iter");
        double[] slowest = numbers(iterations.get("times_us"));
        JsonArray byProcess = iterations.getAsJsonArray("per_process_max_times_us");
        assertEquals(ITERATIONS, slowest.length);
        assertEquals(2, byProcess.size());
        for (int i = 0; i < ITERATIONS; i++) {
            double first = numbers(byProcess.get(0))[i];
            double second = numbers(byProcess.get(1))[i];
            assertEquals(Math.max(first, second), slowest[i], iterations.toString());
            assertEquals(i == LATE, first > HALF_A_SECOND && second > HALF_A_SECOND, iterations.toString());
        }
        // The summary includes only the last iteration.
        assertEquals(LATE + 1, iterations.get("skipped_iterations").getAsInt());
        for (String name : List.of("min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us")) {
            assertEquals(slowest[ITERATIONS - 1], iterations.get(name).getAsDouble(), 1e-9, name);
        }
        assertEquals(0, iterations.get("stdev_us").getAsDouble(), 1e-9);
        assertEquals(0, iterations.get("cv_pct").getAsDouble(), 1e-9);
        JsonObject inPlace = result(json).getAsJsonObject("in_place_per_iter");
        assertEquals(ITERATIONS, inPlace.getAsJsonArray("times_us").size());
        assertTrue(inPlace.get("max_us").getAsDouble() < HALF_A_SECOND, inPlace.toString());
    }

    /** In a ring the last rank waits for the second one, which is late, only at the barrier. */
    @Test
    void timesOfIterationsExcludeTheBarrier() throws Exception {
        JsonObject iterations = result(late("sendrecv -np 4", "Send", "-z 3")).getAsJsonObject("out_of_place_per_iter");
        JsonArray byProcess = iterations.getAsJsonArray("per_process_max_times_us");
        assertTrue(numbers(byProcess.get(2))[LATE] > HALF_A_SECOND, iterations.toString());
        assertTrue(numbers(byProcess.get(3))[LATE] < HALF_A_SECOND, iterations.toString());
    }

    @Test
    void resultFileHasNoIterationsByDefault() throws Exception {
        Path file = folder.resolve("plain.json");
        assertEquals(
                0,
                run("broadcast -b 8 -e 8 -n 2 --jit-warmup 0 -np 1 -J " + file).code());
        JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
        assertEquals(
                "false", json.getAsJsonObject("config").get("per_iter_timing").getAsString());
        assertEquals(
                "false", json.getAsJsonObject("config").get("parallel_init").getAsString());
        assertTrue(result(json).has("in_place"), json.toString());
        assertTrue(!result(json).has("in_place_per_iter"), json.toString());
    }

    /** A substitute for mpirun that writes its arguments to a file. */
    private Path launcher(String started) throws IOException {
        return script(String.format(Locale.ROOT, """
                echo "$@" >> %s
                [ "$1 $2 $3" = "--bind some -np" ] || exit 9
                size=$4
                shift 4
                export OMPI_COMM_WORLD_SIZE=$size OMPI_COMM_WORLD_LOCAL_SIZE=$size OMPI_MCA_ess_base_jobid=$PPID
                for ((rank = 0; rank < size; rank++)); do
                  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_LOCAL_RANK=$rank "$@" &
                done
                wait -n && wait -n""", started));
    }

    /** The other program prints lines like those of nccl-tests. */
    @Test
    void comparisonStartsBothProgramsAlike() throws Exception {
        String started = folder.resolve("started").toString();
        Path program = script("""
                [ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0
                echo "0 0 float none -1 9.00 0.00 0.00 0 9.00 0.00 0.00 N/A"
                echo "64 8 float none -1 1e9 0.00 0.00 0 1e9 0.00 0.00 N/A"
                """);
        Path file = folder.resolve("compared.json");
        List<String> arguments = new ArrayList<>(
                List.of("alltoall -np 2 -b 8 -e 64 -f 8 -n 2 -c 0 --jit-warmup 0 --rounds 2".split(" ")));
        arguments.addAll(List.of("--against", program.toString(), "--mpirun", launcher(started) + " --bind some"));
        arguments.addAll(List.of("-J", file.toString()));
        Outcome outcome = run(arguments);
        String text = String.join("\n", outcome.lines());
        assertEquals(0, outcome.code(), text);
        assertTrue(
                text.contains(
                        "# alltoall, from 1 byte on: median ratio 0.000, largest 0.000; fast 0.000, largest 0.000;"),
                text);
        List<String> commands = Files.readAllLines(Path.of(started));
        assertEquals(4, commands.size(), commands::toString);
        assertTrue(commands.get(0).contains(program + " -t 1 -g 1 -b 8 -e 64 -f 8 -n 2"), commands::toString);
        assertTrue(commands.get(1).contains("/bin/java "), commands::toString);
        JsonArray results =
                JsonParser.parseString(Files.readString(file)).getAsJsonObject().getAsJsonArray("results");
        assertEquals(4, results.size(), text);
        JsonObject last = results.get(3).getAsJsonObject();
        assertEquals(2, last.getAsJsonArray("ours_us").size(), text);
        assertTrue(last.get("ours_fast_us").getAsDouble() > 0, text);
    }

    @Test
    void comparisonReadsRowsWithIterations() throws Exception {
        Path program = script("""
                echo "8 2 float sum -1 1e9 0.00 0.00 0 1.0 2.0 2.0 3.0 1e9 0.00 0.00 0 1.0 2.0 2.0 3.0"
                """);
        List<String> arguments = new ArrayList<>(
                List.of("all_reduce -np 1 -b 8 -e 8 -n 3 -I 1 -K 1 -p 1 --jit-warmup 0 --rounds 1".split(" ")));
        arguments.addAll(List.of("--against", program.toString()));
        Outcome outcome = run(arguments);
        String text = String.join("\n", outcome.lines());
        assertEquals(0, outcome.code(), text);
        assertTrue(text.contains(program + " -t 1 -g 1 -b 8 -e 8"), text);
        assertTrue(text.contains(" -p 1 -I 1 -K 1"), text);
        assertTrue(text.contains("8 2 float sum -1 in place"), text);
        arguments.addAll(List.of("-M", "1"));
        Outcome refused = run(arguments);
        assertEquals(2, refused.code());
        assertTrue(
                refused.lines().contains("nccl4j: --against compares times, and cannot be combined with -M: 1"),
                refused.lines()::toString);
    }

    @Test
    void comparisonRejectsSizesWithoutData() throws Exception {
        Path program = script("""
                [ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0
                echo "0 0 float sum -1 9.00 0.00 0.00 0 9.00 0.00 0.00 N/A"
                """);
        List<String> arguments =
                new ArrayList<>(List.of("all_reduce -np 2 -b 0 -e 0 -n 1 -c 0 --jit-warmup 0 --rounds 1".split(" ")));
        String launcher = launcher(folder.resolve("started").toString()) + " --bind some";
        arguments.addAll(List.of("--against", program.toString(), "--mpirun", launcher));
        Outcome outcome = run(arguments);
        String text = String.join("\n", outcome.lines());
        assertEquals(1, outcome.code(), text);
        assertTrue(text.contains("nothing to compare: with these sizes, all_reduce has 0 bytes for each rank"), text);
    }

    private Path script(String text) throws IOException {
        Path file = Files.createTempFile(folder, "script", ".sh");
        Files.writeString(file, "#!/usr/bin/env bash\n" + text + "\n");
        assertTrue(file.toFile().setExecutable(true));
        return file;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "all_reduce_all | no such collective: 'all_reduce_all'; there are all_reduce, all_gather,",
                "all_reduce -b 2K -e 1K | -e must not be less than -b: 1024 < 2048",
                "all_reduce -o mean | no such reduction: 'mean'; there are [sum, prod, max, min, avg, mulsum] and all",
                "all_reduce -d float16 | no such type: 'float16'; there are [int8,",
                "all_reduce -np 0 | -np must be at least 1: 0",
                "hypercube -g 2 | hypercube needs a thread for each GPU",
                "all_reduce -p 2 | -p must be 0 or 1: 2",
                "all_reduce -M -1 | -M must be 0 or 1: -1",
                "all_reduce -I 2 | -I must be 0 or 1: 2",
                "all_reduce -I 1 -G 3 | -I cannot be combined with -G, which launches all iterations together: -I 1, -G 3",
                "all_reduce -I 1 -n 100001 | with -I 1, -n must be at most 100000: 100001",
                "all_reduce -I 1 -n 5 -K 5 | -K must be at least 0 and less than -n: 5, -n 5",
                "all_reduce -I 1 -K -1 | -K must be at least 0 and less than -n: -1, -n 20",
                "all_reduce -K 2 | -K needs -I 1: -K 2, -I 0",
                "all_reduce -D 1 -R 2 | -D must be 0, NCCL's own implementation: 1 is a kernel in CUDA C++",
                "alltoall --algo ring | --algo selects among the algorithms of a collective, and alltoall has none: ring",
                "all_reduce --algo ring;tree | --algo: selection must have names of letters, digits and '_'",
                "all_reduce --algo ring --against /bin/true | --against cannot be combined with --algo, which nccl-tests lacks: ring",
                "all_reduce -V 129 | -V must be from 1 to 128: 129",
                "all_reduce -V 16 | -V must not be set: nccl4j lacks the implementations that have it",
            })
    void wrongOptionsAreReported(String line) {
        String[] parts = line.split(" \\| ");
        StringWriter err = new StringWriter();
        CommandLine command = new CommandLine(new PerfCommand()).setErr(new PrintWriter(err));
        assertEquals(2, command.execute((parts[0] + " --engine host").split(" ")), line);
        String first = err.toString().lines().findFirst().orElse("");
        assertTrue(first.contains(parts[1]), first);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "hypercube -np 3 -b 8 -e 8 | hypercube needs 2, 4, 8 ... ranks, and there are 3",
                "reduce -np 2 -r 2 -b 8 -e 8 | -r must be less than the number of ranks: 2 >= 2",
                "all_reduce -np 2 --algo nvls -b 8 -e 8 | CollectiveConfig{algSelection=nvls}",
                "all_reduce -np 2 --algo nvls -b 8 -e 8 --api raw | ncclAllReduceConfig: invalid argument (4)",
                "all_reduce -np 1 -M 1 -b 8 -e 8 | -M reports memory of GPUs, and the host engine uses none: -M 1, engine host",
            })
    void impossibleMeasurementFails(String line) throws Exception {
        String[] parts = line.split(" \\| ");
        Outcome outcome = run(parts[0]);
        assertEquals(1, outcome.code(), line);
        assertTrue(String.join("\n", outcome.lines()).contains(parts[1]), String.join("\n", outcome.lines()));
    }
}
