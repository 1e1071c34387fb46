package io.github.nccl4j.samples.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(120)
class LauncherTest {

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    private int launch(int ranks, Duration limit, String... arguments) throws IOException, InterruptedException {
        return new Launcher(
                        JavaCommand.of(List.of(), TestRank.class.getName(), List.of(arguments)),
                        ranks,
                        Map.of("EXTRA", "more"),
                        limit,
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8))
                .run();
    }

    private List<String> outLines() {
        return out.toString(StandardCharsets.UTF_8).lines().toList();
    }

    private List<String> errLines() {
        return err.toString(StandardCharsets.UTF_8).lines().toList();
    }

    @Test
    void ranksGetTheVariablesOfTorchrun() throws Exception {
        assertEquals(0, launch(2, null, "environment"));
        for (int rank = 0; rank < 2; rank++) {
            String prefix = "[" + rank + "] ";
            assertTrue(outLines().contains(prefix + "RANK=" + rank));
            assertTrue(outLines().contains(prefix + "LOCAL_RANK=" + rank));
            assertTrue(outLines().contains(prefix + "WORLD_SIZE=2"));
            assertTrue(outLines().contains(prefix + "LOCAL_WORLD_SIZE=2"));
            assertTrue(outLines().contains(prefix + "MASTER_ADDR=127.0.0.1"));
            assertTrue(outLines().contains(prefix + "EXTRA=more"));
        }
        assertEquals(
                1,
                outLines().stream()
                        .filter(line -> line.contains("MASTER_PORT="))
                        .map(line -> line.substring(line.indexOf('M')))
                        .distinct()
                        .count());
        assertEquals(List.of(), errLines());
    }

    @Test
    void exitCodeOfTheRankThatFails() throws Exception {
        assertEquals(3, launch(3, null, "exit", "1", "3"));
        assertEquals(1, errLines().size());
        assertTrue(
                errLines().get(0).matches("nccl4j: rank 1 \\(pid \\d+\\) exited with code 3"),
                errLines().get(0));
    }

    @Test
    void aFailureEndsTheOthers() throws Exception {
        assertEquals(7, launch(3, null, "exit-others-wait", "2", "7"));
        assertNoneAlive();
    }

    @Test
    void aKilledRankIsNamedThoughOthersFailToo(@TempDir Path folder) throws Exception {
        assertEquals(137, launch(3, null, "killed", "2", folder.resolve("pid").toString()));
        String last = errLines().get(errLines().size() - 1);
        assertTrue(last.matches("nccl4j: rank 2 \\(pid \\d+\\) was killed by signal 9 \\(SIGKILL\\)"), last);
        assertNoneAlive();
    }

    @Test
    void linesStayWholeAndKeepTheirOrder() throws Exception {
        int count = 20_000;
        assertEquals(0, launch(3, null, "lines", Integer.toString(count)));
        for (int rank = 0; rank < 3; rank++) {
            String prefix = "[" + rank + "] ";
            List<String> own =
                    outLines().stream().filter(line -> line.startsWith(prefix)).toList();
            assertEquals(count + 1, own.size());
            IntStream.range(0, count)
                    .forEach(i -> assertEquals(prefix + "line " + i + " " + "x".repeat(i % 97), own.get(i)));
            assertEquals(prefix + "no end of line", own.get(count));
            assertTrue(errLines().contains(prefix + "on standard error"));
        }
        assertEquals(3 * (count + 1), outLines().size());
    }

    @Test
    void theTimeLimitEndsAllWithTheirChildren() throws Exception {
        long start = System.nanoTime();
        assertEquals(Launcher.TIMED_OUT, launch(2, Duration.ofSeconds(2), "child"));
        assertTrue(System.nanoTime() - start < TimeUnit.SECONDS.toNanos(5));
        assertEquals(List.of("nccl4j: timed out after 2 s; still running: ranks 0, 1"), errLines());
        assertNoneAlive();
        assertFalse(ProcessHandle.current().descendants().anyMatch(ProcessHandle::isAlive));
    }

    /** SIGKILL leaves the launcher no chance: the ranks have to notice. SIGTERM and SIGINT run its shutdown hook. */
    @ParameterizedTest
    @ValueSource(strings = {"KILL", "TERM", "INT"})
    void ranksEndWithTheirLauncher(String signal) throws Exception {
        // A build in the background of a shell ignores SIGINT, and so would its children.
        List<String> command = new ArrayList<>(List.of("env", "--default-signal=INT"));
        command.addAll(JavaCommand.of(List.of(), TestRank.class.getName(), List.of("launch", "wait")));
        Process launcher = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(launcher.getInputStream(), StandardCharsets.UTF_8))) {
            List<Long> ranks = new ArrayList<>();
            while (ranks.size() < 2) {
                String line = lines.readLine();
                ranks.add(Long.parseLong(line.substring(line.lastIndexOf(' ') + 1)));
            }
            new ProcessBuilder("kill", "-" + signal, Long.toString(launcher.pid())).start();
            assertTrue(launcher.waitFor(20, TimeUnit.SECONDS));
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
            while (ranks.stream().anyMatch(LauncherTest::runs)) {
                assertTrue(System.nanoTime() < deadline, "a rank outlived its launcher");
                Thread.sleep(10);
            }
        } finally {
            launcher.descendants().forEach(ProcessHandle::destroyForcibly);
            launcher.destroyForcibly();
        }
    }

    /** An orphan that ended may stay a zombie for as long as process 1 likes, so its state counts, not its presence. */
    private static boolean runs(long pid) {
        try {
            String stat = Files.readString(Path.of("/proc", Long.toString(pid), "stat"));
            return "ZX".indexOf(stat.charAt(stat.lastIndexOf(')') + 2)) < 0;
        } catch (IOException gone) {
            return false;
        }
    }

    @Test
    void aCommandThatCannotBeStartedIsAnError() {
        Launcher launcher = new Launcher(List.of("/no/such/program"), 2, Map.of(), null, System.out, System.err);
        IOException failure = assertThrows(IOException.class, launcher::run);
        assertTrue(failure.getMessage().contains("/no/such/program"));
    }

    @Test
    void thereIsAtLeastOneRank() {
        IllegalArgumentException failure = assertThrows(
                IllegalArgumentException.class,
                () -> new Launcher(List.of("true"), 0, Map.of(), null, System.out, System.err));
        assertEquals("the number of ranks must be at least 1: 0", failure.getMessage());
    }

    /** Every rank that waits prints its process id first. */
    private void assertNoneAlive() {
        outLines().stream()
                .filter(line -> line.contains("pid "))
                .map(line -> Long.parseLong(line.substring(line.lastIndexOf(' ') + 1)))
                .forEach(pid -> assertFalse(
                        ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false)));
    }
}
