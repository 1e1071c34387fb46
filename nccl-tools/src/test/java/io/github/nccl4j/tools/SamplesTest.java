package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.Programs;
import io.github.nccl4j.tools.support.ToolsJar;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.zip.ZipFile;
import org.bytedeco.javacpp.Loader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs the samples as users do, from the jar with all dependencies, on the host engine. */
@Timeout(600)
class SamplesTest {
    static ProcessBuilder command(String arguments) {
        return ToolsJar.command(List.of(arguments.split(" ")));
    }

    private static Process start(String arguments) throws IOException {
        return ChildProcesses.start(command(arguments));
    }

    static BufferedReader lines(Process process) {
        return new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    static List<String> output(Process process) throws IOException {
        try (BufferedReader lines = lines(process)) {
            return lines.lines().toList();
        }
    }

    private static List<String> outputOf(String arguments, int code) throws Exception {
        Process process = start(arguments);
        List<String> output = output(process);
        assertEquals(code, process.waitFor(), () -> String.join("\n", output));
        return output;
    }

    private static List<String> outputOfSuccess(String arguments) throws Exception {
        return outputOf(arguments, 0);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "run 01-all-reduce -n 4 -e 256K",
                "run 01 -n 1 -e 1K",
                "run 02-send-recv -n 3 -e 256K",
                "run 03-all-to-all-v -n 4",
                "run 03 -n 3 -c 5 --window",
                "run 04-multi-communicator -n 4",
                "run 04 -n 3 -r 3 -c 1000",
                "run 05-data-parallel-training -n 3",
                "run 06-cuda-graph -n 3 -i 50",
                "run 12-reshard -n 3",
                "run 12 -n 4 -r 2 -c 3",
                "run 13-mixture-of-experts -n 3",
                "run 13 -n 1 -t 1 -e 1",
                "run 07-windows -n 3",
                "run 07 -n 2 -c 1000",
                "run 09-grow -n 3",
                "run 09 -n 2 -c 1000"
            })
    void succeeds(String arguments) throws Exception {
        List<String> output = outputOfSuccess(arguments + " --engine host");
        // The order of different ranks' lines is not defined.
        String head = "\\[0] # nccl4j.*, engine host, NCCL .*";
        assertEquals(1, output.stream().filter(line -> line.matches(head)).count(), () -> String.join("\n", output));
        assertEveryRankChecked(arguments, output);
    }

    /** Asserts that every rank printed that it checked its results, or that a table counts no wrong elements. */
    static void assertEveryRankChecked(String arguments, List<String> output) {
        String text = String.join("\n", output);
        int ranks = Integer.parseInt(arguments.replaceFirst(".*? -np? (\\d+).*", "$1"));
        if (arguments.startsWith("perf")) {
            assertEquals(
                    ranks,
                    output.stream().filter(line -> line.startsWith("#  Rank ")).count(),
                    text);
            assertTrue(output.contains("# Out of bounds values : 0 OK"), text);
            return;
        }
        if (arguments.startsWith("gradients")) {
            assertTrue(output.stream().anyMatch(line -> line.contains("; " + ranks + " ranks, host memory;")), text);
            assertTrue(output.contains("# Out of bounds values : 0 OK"), text);
            return;
        }
        String head = "\\[0] # " + ranks + " ranks?, rank 0 on host memory";
        assertTrue(output.stream().anyMatch(line -> line.matches(head)), text);
        if (arguments.startsWith("run 01")) {
            assertTrue(output.contains("[0] # Out of bounds values : 0 OK"), text);
            return;
        }
        for (int i = 0; i < ranks; i++) {
            String checked = String.format(Locale.ROOT, "\\[%1$d] rank %1$d\\b.* every (element|bit) checked", i);
            assertEquals(
                    1, output.stream().filter(line -> line.matches(checked)).count(), checked + " in:\n" + text);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"run 10-with-python -n 2", "run 10 -n 4 -c 1000"})
    void succeedsWithPython(String arguments) throws Exception {
        Programs.require("python3", "python3");
        succeeds(arguments);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 4})
    void survivorsContinueAfterARankIsKilled(int ranks) throws Exception {
        List<String> output = outputOfSuccess("run 08-survive-a-failure --engine host -n " + ranks);
        int killed = ranks - 1;
        String text = String.join("\n", output);
        assertTrue(text.contains("nccl4j: rank " + killed + " (pid "), text);
        assertTrue(text.contains(" was killed by signal 9 (SIGKILL); the other ranks continue"), text);
        for (int rank = 0; rank < killed; rank++) {
            assertTrue(text.contains("rank " + rank + ": step 10 failed: ncclAllReduce of 10000 int64"), text);
            assertTrue(
                    text.contains("rank " + rank + ": continued as rank " + rank + " of " + killed + " after rank "
                            + killed + " was killed; 20 steps of 10000 elements, every element checked"),
                    text);
        }
    }

    /** Each rank is killed once, rank 0 too, and is back at the end. */
    @Test
    void killedRanksComeBack() throws Exception {
        assertAllComeBack(
                outputOfSuccess("run 11-elastic-training --engine host -n 3"),
                "starting it again, restart \\d of at most 3");
    }

    /** A spare takes the place of each rank that is killed, and the last one is not needed. */
    @Test
    void sparesReplaceKilledRanks() throws Exception {
        List<String> output = outputOfSuccess("run 11-elastic-training --engine host -n 3 --max-restarts 0 --spares 4");
        assertAllComeBack(output, "spare \\d \\(pid \\d+\\) takes its place, spares left: \\d");
        assertTrue(output.stream().noneMatch(line -> line.startsWith("[spare")), output.toString());
    }

    /** Checks that each of 3 ranks was killed, and what the launcher says of it: a regular expression. */
    private static void assertAllComeBack(List<String> output, String replacement) {
        String text = String.join("\n", output);
        for (int rank = 0; rank < 3; rank++) {
            assertTrue(
                    text.contains("[" + rank + "] rank " + rank
                            + " was killed and came back: 200 steps, the weights are those"
                            + " of an undisturbed run, every bit checked"),
                    text);
            assertTrue(
                    text.matches("(?s).*nccl4j: rank " + rank + " \\(pid \\d+\\) was killed by signal 9 \\(SIGKILL\\); "
                            + replacement + "\n.*"),
                    text);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "run 11 -n 2 --spares -1 | --spares must be at least 0: -1",
                "run 01 -n 2 --spares 1 | --spares must be 0, because 01-all-reduce does not take ranks back: 1",
                "run 11 -n 2 --max-restarts -1 | --max-restarts must be at least 0: -1",
                "run 01 -n 2 --max-restarts 1 | --max-restarts must be 0, because 01-all-reduce does not take ranks back: 1",
            })
    void wrongRestartsAreRefused(String arguments, String message) throws Exception {
        List<String> output = outputOf(arguments + " --engine host", 2);
        assertTrue(output.contains("nccl4j: " + message), output::toString);
    }

    /** Each rank reports it, before the communicator is created. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "run 01 -n 2 -e x | 01-all-reduce: For input string: \"x\"",
                "run 01 -n 2 -b 1K -e 8 | 01-all-reduce: -b must be from 4 to -e, -f at least 2, -w 0 and -i 1: -b 1K -e 8",
                "run 04 -n 3 -r 2 | 04-multi-communicator: -r must divide the number of ranks: 3 ranks, 2 rows",
            })
    void wrongValuesAreReportedByTheSample(String arguments, String message) throws Exception {
        List<String> output = outputOf(arguments + " --engine host", 2);
        assertTrue(
                output.stream().anyMatch(line -> line.matches("\\[\\d] " + Pattern.quote(message))), output::toString);
        assertTrue(output.stream().noneMatch(line -> line.contains("\tat ")), output::toString);
    }

    /** {@code -Dnccl4j.engine} chooses the library of the ranks, as {@code --engine} does. */
    @Test
    void samplesTakeTheEngineOfTheProperty() throws Exception {
        ProcessBuilder builder = command("run 02 -n 2 -e 4K");
        builder.command().add(1, "-Dnccl4j.engine=host");
        Process process = ChildProcesses.start(builder);
        List<String> output = output(process);
        assertEquals(0, process.waitFor(), output::toString);
        assertEveryRankChecked("run 02 -n 2", output);
        assertTrue(output.stream().noneMatch(line -> line.contains("warning")), output::toString);
    }

    /** A rank that never comes ends the wait of the others. */
    @Test
    void initTimeoutLimitsTheWaitForOtherRanks() throws Exception {
        ProcessBuilder builder = command("run 02 --engine host --init-timeout 1");
        builder.environment()
                .putAll(Map.of("RANK", "0", "WORLD_SIZE", "2", "LOCAL_RANK", "0", "LOCAL_WORLD_SIZE", "2"));
        builder.environment().putAll(Map.of("MASTER_ADDR", "127.0.0.1", "MASTER_PORT", "" + freePort()));
        Process process = ChildProcesses.start(builder);
        List<String> output = output(process);
        assertEquals(1, process.waitFor(), output::toString);
        assertTrue(output.get(0).startsWith("02-send-recv: "), output::toString);
        assertTrue(output.get(0).contains("1 s"), output::toString);
    }

    @Test
    void growIsSkippedWithoutNcclCommGrow(@TempDir Path folder) throws Exception {
        Path library = libraryWithout("ncclCommGrow", folder);
        List<String> output = outputOfSuccess("run 09-grow -n 2 --library " + library);
        String last = output.get(output.size() - 1);
        assertTrue(last.startsWith("[0] skipped: ncclCommGrow needs NCCL 2.29.2, loaded is "), last);
    }

    @Test
    void windowsAreSkippedWithoutNcclPutSignal(@TempDir Path folder) throws Exception {
        Path library = libraryWithout("ncclPutSignal", folder);
        List<String> output = outputOfSuccess("run 07-windows -n 2 --library " + library);
        String last = output.get(output.size() - 1);
        assertTrue(last.startsWith("[0] skipped: ncclPutSignal needs NCCL 2.29.2, loaded is "), last);
    }

    @Test
    void perfRejectsAlgorithmsWithoutReduceConfig(@TempDir Path folder) throws Exception {
        Path library = libraryWithout("ncclReduceConfig", folder);
        String sizes = " -np 2 -b 8 -e 8 -n 1 --jit-warmup 0 --library " + library;
        Process refused = start("perf reduce --algo ring" + sizes);
        String text = String.join("\n", output(refused));
        assertEquals(1, refused.waitFor(), text);
        assertTrue(text.contains("--algo: ncclReduceConfig needs NCCL 2.31.2, loaded is "), text);
        outputOfSuccess("perf reduce" + sizes);
    }

    /** A copy of the host engine in which a function has another name, like a library that lacks the function. */
    static Path libraryWithout(String function, Path folder) throws IOException {
        String entry = "io/github/nccl4j/host/" + Loader.getPlatform() + "/libnccl4j_host.so";
        try (ZipFile jar = new ZipFile(ToolsJar.PATH);
                InputStream content = jar.getInputStream(jar.getEntry(entry))) {
            String text = new String(content.readAllBytes(), StandardCharsets.ISO_8859_1);
            String changed = text.replace(function + "\0", "X".repeat(function.length()) + "\0");
            assertNotEquals(text, changed);
            return Files.write(folder.resolve("libolder.so"), changed.getBytes(StandardCharsets.ISO_8859_1));
        }
    }

    /** The variables that a user's own script must set at least. */
    private static final String SCRIPT_VARIABLES = "RANK=%1$d WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%2$d";

    /** The variables are those of other launchers. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "RANK=%1$d WORLD_SIZE=2 LOCAL_RANK=%1$d LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%2$d",
                SCRIPT_VARIABLES,
                "OMPI_COMM_WORLD_RANK=%1$d OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=%1$d"
                        + " OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_PORT=%2$d",
                "PMI_RANK=%1$d PMI_SIZE=2 MPI_LOCALRANKID=%1$d MPI_LOCALNRANKS=2 MASTER_PORT=%2$d",
                "SLURM_PROCID=%1$d SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=%1$d SLURM_NODEID=0"
                        + " SLURM_STEP_TASKS_PER_NODE=2 MASTER_PORT=%2$d"
            })
    void runsAsOneRankOfAnOuterLauncher(String variables) throws Exception {
        for (Process rank : startAsOuterLauncher(variables, "run 03 --engine host")) {
            List<String> output = output(rank);
            assertEquals(0, rank.waitFor(), () -> String.join("\n", output));
            String last = output.get(output.size() - 1);
            assertTrue(last.endsWith("every element checked"), last);
        }
    }

    private static List<Process> startAsOuterLauncher(String variables, String command) throws IOException {
        int port = freePort();
        List<Process> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            ProcessBuilder builder = command(command);
            for (String variable :
                    String.format(Locale.ROOT, variables, rank, port).split(" ")) {
                builder.environment().put(variable.split("=")[0], variable.split("=")[1]);
            }
            ranks.add(ChildProcesses.start(builder));
        }
        return ranks;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @Test
    void perfFindsLocalRanksWithoutLocalRankVariables() throws Exception {
        List<List<String>> outputs = new ArrayList<>();
        for (Process rank : startAsOuterLauncher(SCRIPT_VARIABLES, "perf all_reduce --engine host -b 8 -e 8")) {
            List<String> output = output(rank);
            assertEquals(0, rank.waitFor(), () -> String.join("\n", output));
            outputs.add(output);
        }
        // Rank 0 prints the table, with both ranks.
        assertEveryRankChecked("perf -n 2", outputs.get(0));
    }

    /** The store of rank 0 must stay open after the ranks have found their local ranks. */
    @Test
    void survivorContinuesWithoutLocalRankVariables() throws Exception {
        List<Process> ranks = startAsOuterLauncher(SCRIPT_VARIABLES, "run 08 --engine host");
        List<String> output = output(ranks.get(0));
        String text = String.join("\n", output);
        assertEquals(0, ranks.get(0).waitFor(), text);
        assertEquals(137, ranks.get(1).waitFor());
        assertTrue(text.contains("rank 0: continued as rank 0 of 1 after rank 1 was killed; 20 steps"), text);
    }

    @Test
    void runsUnderMpirun() throws Exception {
        Programs.require("mpirun", "openmpi-bin");
        ProcessBuilder builder = command("run 01-all-reduce --engine host -e 64K");
        // Open MPI takes an argument of java that contains "cp", such as javacpp, for -cp.
        builder.command().removeIf(word -> word.startsWith("-Dorg.bytedeco.javacpp."));
        builder.command().addAll(0, List.of("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4"));
        Process mpirun = ChildProcesses.start(builder);
        List<String> output = output(mpirun);
        assertEquals(0, mpirun.waitFor(), () -> String.join("\n", output));
        assertTrue(output.stream().anyMatch(line -> line.startsWith("# 4 ranks, rank 0 on ")), output::toString);
        assertTrue(
                output.stream().anyMatch(line -> line.startsWith("# Out of bounds values : 0 OK")), output::toString);
    }

    @Test
    void killedRankEndsTheRunAndIsNamed() throws Exception {
        Process launcher = start("run 01 -n 4 --engine host -e 8 -i 1000000000");
        try (BufferedReader lines = lines(launcher)) {
            String line = lines.readLine();
            while (!line.contains("(us)")) {
                line = lines.readLine();
            }
            List<ProcessHandle> ranks = launcher.children()
                    .filter(child -> child.info().command().orElse("").endsWith("java"))
                    .toList();
            assertEquals(4, ranks.size());
            ProcessHandle victim = ranks.get(2);
            victim.destroyForcibly();
            long start = System.nanoTime();
            List<String> rest = lines.lines().toList();
            assertEquals(137, launcher.waitFor());
            assertTrue(System.nanoTime() - start < TimeUnit.SECONDS.toNanos(5));
            String last = rest.get(rest.size() - 1);
            assertTrue(
                    last.matches(
                            "nccl4j: rank \\d \\(pid " + victim.pid() + "\\) was killed by signal 9 \\(SIGKILL\\)"),
                    last);
            ranks.forEach(rank -> assertFalse(rank.isAlive()));
        } finally {
            ChildProcesses.kill(launcher);
        }
    }
}
