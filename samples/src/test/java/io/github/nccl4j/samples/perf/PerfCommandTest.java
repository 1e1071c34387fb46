package io.github.nccl4j.samples.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.github.nccl4j.samples.launch.ChildProcesses;
import io.github.nccl4j.samples.support.SamplesJar;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** The command as users start it, on the host engine. */
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
        List<String> words = new ArrayList<>(List.of("perf"));
        words.addAll(arguments);
        words.addAll(List.of("--engine", "host"));
        Process process = ChildProcesses.start(SamplesJar.command(words));
        List<String> lines = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                .lines()
                .toList();
        return new Outcome(process.waitFor(), lines);
    }

    /** The number of rows; each has 13 columns, and no wrong elements. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "all_reduce -np 2 -b 8 -e 2M -f 64 -n 2 | 4",
                "all_reduce -np 2 -g 2 -b 1K -e 1K -n 2 -d all -o all -m 3 | 72",
                "reduce_scatter -t 3 -b 1K -e 3K -i 1K -n 2 -o mulsum -d f8e5m2 --api raw -z 1 | 3",
                "reduce -np 3 -b 1K -e 1K -n 2 -r -1 -u 3 -a 3 | 3",
                "broadcast -g 3 -b 1K -e 1K -n 2 -N 2 --api raw -z 2 -d bfloat16 | 2",
                "all_gather -np 3 -b 1M -e 1M -n 2 -R 2 -o sum | 1",
                "gather -np 3 -b 1K -e 1K -n 2 -R 1 -z 3 | 1",
                "scatter -np 2 -t 2 -b 1K -e 1K -n 2 -r 2 --api raw | 1",
                "alltoall -g 3 -b 1K -e 1K -n 2 -C 1 | 1",
                "alltoallv -np 2 -g 2 -b 64K -e 64K -n 2 --spread 0.5 | 1",
                "alltoallv -np 3 -b 64K -e 64K -n 2 --api raw -S 1 | 1",
                "sendrecv_perf -np 3 -b 1K -e 1K -n 2 -w 0 | 1",
                "hypercube -np 4 -b 1K -e 1K -n 2 | 1",
                "hypercube -t 2 -b 1K -e 1K -n 2 --api raw | 1",
            })
    void everyElementIsRight(String arguments, int rows) throws Exception {
        Outcome outcome = run(arguments + " --jit-warmup 0");
        String text = String.join("\n", outcome.lines());
        assertEquals(0, outcome.code(), text);
        assertEquals(rows, outcome.rows().size(), text);
        assertTrue(outcome.lines().contains("# Out of bounds values : 0 OK"), text);
        for (String row : outcome.rows()) {
            // Hypercube has no name of a reduction.
            String[] columns = row.strip().split("\\s+");
            int first = arguments.startsWith("hypercube") ? 4 : 5;
            assertEquals("0", columns[first + 3], text);
            assertTrue(Double.parseDouble(columns[first]) > 0, text);
        }
    }

    @Test
    void aFileOfResultsHasTheFieldsOfNcclTests() throws Exception {
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

    /** Starts processes as mpirun does, and writes its arguments into a file. */
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

    /** With a program that prints what one of nccl-tests would. */
    @Test
    void bothProgramsAreStartedInTheSameWay() throws Exception {
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
    void nothingIsComparedWhereNothingIsSent() throws Exception {
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
        assertTrue(
                text.contains("nothing to compare: of the sizes asked for, all_reduce has 0 bytes for each rank"),
                text);
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
                "all_reduce_all | there is no 'all_reduce_all'; there are all_reduce, all_gather,",
                "all_reduce -b 2K -e 1K | -e must not be less than -b: 1024 < 2048",
                "all_reduce -o mean | no such reduction: 'mean'; there are [sum, prod, max, min, avg, mulsum] and all",
                "all_reduce -d float16 | no such type: 'float16'; there are [int8,",
                "all_reduce -np 0 | -np must be at least 1: 0",
                "hypercube -g 2 | hypercube needs a thread for each GPU",
            })
    void wrongOptionsAreNamed(String line) {
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
                "all_reduce -np 2 -G 1 -b 8 -e 8 | a graph needs a CUDA device",
            })
    void whatCannotBeMeasuredFails(String line) throws Exception {
        String[] parts = line.split(" \\| ");
        Outcome outcome = run(parts[0]);
        assertEquals(1, outcome.code(), line);
        assertTrue(String.join("\n", outcome.lines()).contains(parts[1]), String.join("\n", outcome.lines()));
    }
}
