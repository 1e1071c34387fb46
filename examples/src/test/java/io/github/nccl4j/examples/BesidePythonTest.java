package io.github.nccl4j.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The table of examples beside Python, by programs that print known figures. */
@Timeout(60)
class BesidePythonTest {
    private static final Path PYTHON = Path.of("src/main/python");

    @TempDir
    private Path folder;

    /** A program that prints the next of some times of a step at each start. */
    private Path program(String name, String memory, int... milliseconds) throws IOException {
        List<String> lines = new ArrayList<>(List.of("#!/bin/sh", "echo \"$@\" >> " + folder.resolve(name + ".args")));
        lines.add("turn=$(wc -l < " + folder.resolve(name + ".args") + ")");
        for (int i = 0; i < milliseconds.length; i++) {
            lines.add("[ $turn = " + (i + 1) + " ] && echo '" + milliseconds[i]
                    + ".0 ms a step of 5, first step 2.00 s after" + " the start, peak memory " + memory + "'");
        }
        lines.add("exit 0");
        Path program = Files.write(folder.resolve(name), lines);
        return Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    private String run(int code, Path java, Path python, String... more) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), BesidePython.class.getName()));
        command.addAll(List.of("--java", java.toString(), "--python", python.toString(), "--jobs", "experts"));
        command.addAll(List.of(more));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(code, process.waitFor(), output);
        return output;
    }

    @Test
    void tableHasMediansSpreadsAndRatiosOfTheSameTurn() throws Exception {
        String memory = "100 MiB of tensors, 3000 MiB of the GPU";
        Path java = program("java", memory, 10, 30, 20);
        Path python = program("python", "200 MiB of tensors, 2000 MiB of the GPU", 20, 20, 40);
        String output = run(0, java, python, "-r", "3", "-n", "4", "--sizes", "gpu", "--scripts", "/there");
        assertTrue(output.contains("""
                        | experts | step, ms | 20.00 (10.00 to 30.00) | 20.00 (20.00 to 40.00) | 0.50 (0.50 to 1.50) |
                        | experts | start to first step, s | 2.00 (2.00 to 2.00) | 2.00 (2.00 to 2.00) | 1.00 (1.00 to 1.00) |
                        | experts | peak memory, MiB | 100 (100 to 100) | 200 (200 to 200) | 0.50 (0.50 to 0.50) |
                        | experts | memory of the GPU in use, MiB | 3000 (3000 to 3000) | 2000 (2000 to 2000) | 1.50 (1.50 to 1.50) |
                        """), output);
        String arguments = "-t 4096 -w 2048 -u 20 -i 50";
        assertTrue(Files.readString(folder.resolve("java.args")).contains("run experts -n 4 " + arguments), output);
        assertEquals(
                "-m torch.distributed.run --nproc-per-node 4 /there/experts.py " + arguments,
                Files.readAllLines(folder.resolve("python.args")).get(0));
    }

    @Test
    void aProgramThatIsMissingIsNamed() throws Exception {
        String output = run(1, program("java", "1 MiB", 1), folder.resolve("no-python"), "-r", "1");
        assertTrue(output.contains("# experts: Cannot run program \"" + folder.resolve("no-python") + "\""), output);
        assertTrue(!output.contains("at io.github"), output);
    }

    @Test
    void aProgramThatFailsIsAFailure() throws Exception {
        Path broken = program("broken", "1 MiB", 1);
        Files.writeString(broken, "#!/bin/sh\necho the reason\nexit 3\n");
        String output = run(1, program("java", "1 MiB", 1), broken, "-r", "1");
        assertTrue(output.contains("exit code 3 of " + broken) && output.contains("the reason"), output);
    }

    /** Otherwise the two do not do the same work. */
    @ParameterizedTest
    @ValueSource(strings = {"RingAttention", "TensorParallel", "Experts", "ShardedOptimizer", "DataParallel"})
    void pythonHasTheSameOptionsAndDefaults(String example) throws IOException {
        String script = example.replaceAll("(?<=.)([A-Z])", "_$1").toLowerCase(Locale.ROOT) + ".py";
        Path java = Path.of("src/main/java/io/github/nccl4j/examples", example + ".java");
        String options = match("Setup.options\\(args, \"(.*?)\"", java);
        // In Python no rank comes back.
        assertEquals(options.replace("-q 0", "-q 1"), match("job.options\\(\"(.*?)\"", PYTHON.resolve(script)));
    }

    private static String match(String pattern, Path file) throws IOException {
        Matcher matcher = Pattern.compile(pattern).matcher(Files.readString(file));
        assertTrue(matcher.find(), file::toString);
        return matcher.group(1);
    }
}
