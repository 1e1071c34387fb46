package io.github.nccl4j.tools;

import static io.github.nccl4j.testing.Expect.assertContains;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.ToolsJar;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** {@code nccl4j run -- COMMAND}: any program as the ranks. */
@Timeout(600)
class RunProgramTest {
    private record Outcome(int code, String output) {
        List<String> lines() {
            return output.lines().sorted().toList();
        }
    }

    private static Process start(Map<String, String> environment, List<String> options, List<String> program)
            throws IOException {
        List<String> arguments = new ArrayList<>(List.of("run", "--engine", "host"));
        arguments.addAll(options);
        arguments.add("--");
        arguments.addAll(program);
        ProcessBuilder builder = ToolsJar.command(arguments);
        builder.environment().putAll(environment);
        return ChildProcesses.start(builder);
    }

    private static Outcome run(Map<String, String> environment, List<String> options, String... program)
            throws IOException, InterruptedException {
        Process process = start(environment, options, List.of(program));
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Outcome(process.waitFor(), output);
    }

    private static Outcome run(List<String> options, String... program) throws IOException, InterruptedException {
        return run(Map.of(), options, program);
    }

    /** As a newcomer runs it: from its source, with the jar of the command. */
    @Test
    void theProgramOfTheReadmeRunsAsThreeRanks(@TempDir Path folder) throws Exception {
        Matcher program = Pattern.compile("```java\n(import.*?public class Sum .*?)```", Pattern.DOTALL)
                .matcher(Files.readString(Path.of("../README.md")));
        assertTrue(program.find());
        Path source = Files.writeString(folder.resolve("Sum.java"), program.group(1));
        Outcome outcome = run(
                List.of("-n", "3"),
                System.getProperty("java.home") + "/bin/java",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                ToolsJar.PATH,
                source.toString());
        assertEquals(List.of("[0] rank 0 of 3: 6.0", "[1] rank 1 of 3: 6.0", "[2] rank 2 of 3: 6.0"), outcome.lines());
        assertEquals(0, outcome.code());
    }

    @Test
    void itsArgumentsAreItsOwn() throws Exception {
        Outcome outcome =
                run(List.of("-n", "2"), "/bin/sh", "-c", "echo $RANK of $WORLD_SIZE: $*", "0", "-n", "9", "--");
        assertEquals(List.of("[0] 0 of 2: -n 9 --", "[1] 1 of 2: -n 9 --"), outcome.lines());
    }

    @Test
    void theExitCodeIsThatOfTheFirstRankThatFails() throws Exception {
        Outcome outcome = run(List.of("-n", "2"), "/bin/sh", "-c", "[ $RANK = 0 ] || exit 7; sleep 600");
        assertEquals(7, outcome.code());
        assertContains(outcome.output(), "rank 1 (pid ", ") exited with code 7");
    }

    @Test
    void aRankThatFailsIsStartedAgain(@TempDir Path folder) throws Exception {
        String program = "echo start; mkdir " + folder + "/$RANK 2>/dev/null || exit 0; [ $RANK = 0 ] || exit 3";
        Outcome outcome = run(List.of("-n", "2", "--max-restarts", "1"), "/bin/sh", "-c", program);
        assertEquals(0, outcome.code(), outcome.output());
        assertEquals(2, outcome.lines().stream().filter("[1] start"::equals).count(), outcome.output());
    }

    @Test
    void theTimeLimitHolds() throws Exception {
        Outcome outcome = run(List.of("-n", "2", "--timeout", "1"), "/bin/sh", "-c", "sleep 600");
        assertEquals(124, outcome.code());
        assertContains(outcome.output(), "timed out after 1 s; still running: ranks 0, 1");
    }

    @Test
    void aProgramThatIsNotThereIsNamed() throws Exception {
        Outcome outcome = run(List.of("-n", "2"), "/nonexistent/program");
        assertEquals(1, outcome.code());
        assertContains(outcome.output(), "nccl4j: Cannot run program \"/nonexistent/program\"");
    }

    @Test
    void aRankOfAnotherLauncherStartsItsProgramItself() throws Exception {
        Map<String, String> rank =
                Map.of("RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "node0", "MASTER_PORT", "29500");
        Outcome outcome = run(rank, List.of(), "/bin/true");
        assertEquals(2, outcome.code());
        assertContains(outcome.output(), "this process is rank 1 of 2", "start the program itself, or add -n");
        Outcome ranks = run(rank, List.of("-n", "2"), "/bin/sh", "-c", "echo $RANK of $WORLD_SIZE at $MASTER_ADDR");
        assertEquals(List.of("[0] 0 of 2 at 127.0.0.1", "[1] 1 of 2 at 127.0.0.1"), ranks.lines());
    }

    /** The guard ends them: they have no watch of their own. */
    @Test
    void theRanksEndWithAKilledLauncher() throws Exception {
        Process launcher = start(Map.of(), List.of("-n", "1"), List.of("/bin/sh", "-c", "echo $$; sleep 600"));
        try (BufferedReader output =
                new BufferedReader(new InputStreamReader(launcher.getInputStream(), StandardCharsets.UTF_8))) {
            long pid = Long.parseLong(output.readLine().replace("[0] ", ""));
            ProcessHandle rank = ProcessHandle.of(pid).orElseThrow();
            launcher.destroyForcibly();
            Waiting.until("the end of the rank", () -> !rank.isAlive());
        }
    }
}
