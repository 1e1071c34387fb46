package io.github.nccl4j.tools.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.StoreObserver;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.support.MarkedProcesses;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(600)
class LauncherTest {

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    private int launch(int ranks, Duration limit, String... arguments) throws IOException, InterruptedException {
        return launcher(ranks, limit, arguments).run();
    }

    private Launcher launcher(int ranks, Duration limit, String... arguments) {
        return new Launcher(
                JavaCommand.of(List.of(), TestRank.class.getName(), List.of(arguments)),
                ranks,
                Map.of("EXTRA", "more"),
                limit,
                new PrintStream(out, true, StandardCharsets.UTF_8),
                new PrintStream(err, true, StandardCharsets.UTF_8));
    }

    /** However late the second exit is on a busy machine. */
    private int launchKilled(String scenario, int rank, Path folder) throws IOException, InterruptedException {
        return launcher(3, null, scenario, Integer.toString(rank), folder.toString())
                .causeLimit(Duration.ofMinutes(2))
                .run();
    }

    private List<String> outLines() {
        return out.toString(StandardCharsets.UTF_8).lines().toList();
    }

    private List<String> errLines() {
        return err.toString(StandardCharsets.UTF_8).lines().toList();
    }

    /** The secret of a run, which the ranks print; another process can't join without it. */
    private String secretOfRun() throws Exception {
        out.reset();
        assertEquals(0, launch(2, null, "environment"));
        List<String> secrets = outLines().stream()
                .filter(line -> line.contains("NCCL4J_STORE_SECRET="))
                .map(line -> line.substring(line.indexOf('=') + 1))
                .distinct()
                .toList();
        assertEquals(1, secrets.size(), secrets::toString);
        return secrets.get(0);
    }

    @Test
    void ranksShareASecretOfTheirRun() throws Exception {
        String first = secretOfRun();
        assertTrue(first.matches("[0-9a-f]{64}"), first);
        assertNotEquals(first, secretOfRun());
    }

    @Test
    void secretOfTheEnvironmentIsKept() {
        assertNotNull(Launcher.newSecret(Map.of("NCCL4J_STORE_SECRET", "", "NCCL4J_STORE_SECRET_FILE", "")));
        assertNull(Launcher.newSecret(Map.of("NCCL4J_STORE_SECRET", "0123456789abcdef")));
        assertNull(Launcher.newSecret(Map.of("NCCL4J_STORE_SECRET_FILE", "/a/file")));
        assertNull(Launcher.newSecret(Map.of("NCCL4J_ZOOKEEPER", "zk1:2181")));
    }

    /** A process of this machine that finds the port of the store. */
    @Test
    void strangerCanNotJoinTheStoreOfTheRanks() throws Exception {
        Launcher launcher = new Launcher(
                List.of("/bin/sh", "-c", "echo $NCCL4J_STORE_ADDRESS; read end"),
                1,
                Map.of(),
                null,
                new PrintStream(out, true, StandardCharsets.UTF_8),
                new PrintStream(err, true, StandardCharsets.UTF_8));
        Thread running = new Thread(() -> {
            try {
                launcher.run();
            } catch (IOException | InterruptedException ended) {
                // The test ends the run.
            }
        });
        running.start();
        try {
            Waiting.until("the address of the store", () -> !outLines().isEmpty());
            String address = outLines().get(0).replace("[0] ", "");
            String refused = assertThrows(
                            RendezvousException.class, () -> StoreObserver.connect(address, Duration.ofSeconds(60)))
                    .getMessage();
            assertTrue(refused.contains("the store has a secret, and this process has none"), refused);
        } finally {
            running.interrupt();
            running.join();
        }
    }

    @Test
    void ranksGetTorchrunVariables() throws Exception {
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
    void returnsExitCodeOfFailedRank() throws Exception {
        assertEquals(3, launch(3, null, "exit", "1", "3"));
        assertEquals(1, errLines().size());
        assertTrue(
                errLines().get(0).matches("nccl4j: rank 1 \\(pid \\d+\\) exited with code 3"),
                errLines().get(0));
    }

    @Test
    void failureEndsOtherRanks(@TempDir Path folder) throws Exception {
        assertEquals(7, launch(3, null, "exit-others-wait", "2", folder.toString()));
        assertNoneAlive(3);
    }

    @Test
    void failureEndsRanksThatIgnoreSigterm(@TempDir Path folder) throws Exception {
        assertEquals(6, launch(3, null, "stubborn", "2", folder.toString()));
        assertEquals(
                2, outLines().stream().filter(line -> line.endsWith("] hook")).count(), () -> outLines()
                        .toString());
        assertNoneAlive(3);
    }

    @Test
    void reportsKilledRankWhenOthersFailToo(@TempDir Path folder) throws Exception {
        assertEquals(137, launchKilled("killed", 2, folder));
        String last = errLines().get(errLines().size() - 1);
        assertTrue(last.matches("nccl4j: rank 2 \\(pid \\d+\\) was killed by signal 9 \\(SIGKILL\\)"), last);
        assertNoneAlive(3);
    }

    @Test
    void reportsKilledRankWhenAnotherFailedBefore(@TempDir Path folder) throws Exception {
        assertEquals(137, launchKilled("killed-second", 0, folder));
        assertEquals(1, errLines().size(), () -> errLines().toString());
        String line = errLines().get(0);
        assertTrue(line.matches("nccl4j: rank 1 \\(pid \\d+\\) was killed by signal 9 \\(SIGKILL\\)"), line);
    }

    private Launcher restarting(int restarts, String script) {
        return new Launcher(
                        List.of("/bin/sh", "-c", script),
                        3,
                        Map.of(),
                        Duration.ofMinutes(1),
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8))
                .maxRestarts(restarts);
    }

    /** Rank 1 fails twice, each time in another way; the other ranks wait for its third process. */
    @Test
    void failedRankIsStartedAgainAlone(@TempDir Path folder) throws Exception {
        String script = "cd '" + folder + "'; echo life of $RANK of $WORLD_SIZE at $NCCL4J_STORE_ADDRESS;"
                + "if [ $RANK != 1 ]; then while [ ! -e third ]; do sleep 0.01; done; exit 0; fi;"
                + "if [ -e second ]; then : > third; exit 0; fi;"
                + "if [ -e first ]; then : > second; exit 3; fi;"
                + ": > first; kill -9 $$";
        assertEquals(0, restarting(2, script).run());
        assertEquals(2, errLines().size(), () -> errLines().toString());
        assertTrue(
                errLines()
                        .get(0)
                        .matches(
                                "nccl4j: rank 1 \\(pid \\d+\\) was killed by signal 9 \\(SIGKILL\\); starting it again,"
                                        + " restart 1 of at most 2"),
                errLines().get(0));
        assertTrue(
                errLines()
                        .get(1)
                        .matches("nccl4j: rank 1 \\(pid \\d+\\) exited with code 3; starting it again,"
                                + " restart 2 of at most 2"),
                errLines().get(1));
        for (int rank = 0; rank < 3; rank++) {
            String life = "[" + rank + "] life of " + rank + " of 3 at 127.0.0.1:";
            assertEquals(
                    rank == 1 ? 3 : 1,
                    outLines().stream().filter(line -> line.startsWith(life)).count());
        }
        // All processes get the same variables.
        assertEquals(
                1,
                outLines().stream()
                        .map(line -> line.substring(line.lastIndexOf(' ')))
                        .distinct()
                        .count());
    }

    @Test
    void failureAfterTheLastRestartEndsTheRun() throws Exception {
        assertEquals(
                4, restarting(2, "[ $RANK = 2 ] && exit 4; exec sleep 1000").run());
        assertEquals(3, errLines().size(), () -> errLines().toString());
        assertTrue(
                errLines().get(2).matches("nccl4j: rank 2 \\(pid \\d+\\) exited with code 4; restarts before that: 2"),
                errLines().get(2));
        assertNoneAlive(0);
    }

    /** A wrong use fails again, and a user who sends a rank one of these signals does not want another process. */
    @ParameterizedTest
    @CsvSource({"exit 2, 2", "kill -TERM $$, 143", "kill -INT $$, 130", "kill -HUP $$, 129"})
    void ranksThatAreToEndAreNotStartedAgain(String end, int code) throws Exception {
        for (Map.Entry<String, Integer> signal : Map.of("HUP", 1, "INT", 2).entrySet()) {
            assumeFalse(
                    end.contains(signal.getKey()) && isIgnored(signal.getValue()),
                    "SIG" + signal.getKey() + " is ignored here, as under nohup or in the background of a script");
        }
        assertEquals(
                code,
                restarting(5, "[ $RANK = 0 ] && " + end + "; exec sleep 1000").run());
        assertEquals(1, errLines().size(), () -> errLines().toString());
    }

    /** Processes inherit the signals that are ignored. */
    private static boolean isIgnored(int signal) throws IOException {
        String ignored = Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("SigIgn:"))
                .findFirst()
                .orElseThrow();
        long mask = Long.parseUnsignedLong(ignored.substring("SigIgn:".length()).strip(), 16);
        return (mask & 1L << signal - 1) != 0;
    }

    @Test
    void negativeRestartsAreRefused() {
        IllegalArgumentException refused = assertThrows(IllegalArgumentException.class, () -> restarting(-1, "true"));
        assertEquals("the number of restarts must be at least 0: -1", refused.getMessage());
    }

    private static final String BECOME_RANK = "if [ -n \"$NCCL4J_SPARE\" ]; then [ -z \"$RANK$LOCAL_RANK\" ] || exit 9;"
            + " echo waits; read RANK || { echo not needed; exit 0; }; fi; echo life of $RANK; ";

    /** Rank 1 fails twice, each time in another way. One spare more than that is not needed. */
    @Test
    void sparesTakeThePlacesOfFailedRanks(@TempDir Path folder) throws Exception {
        String script = BECOME_RANK + "cd '" + folder + "';"
                + "if [ $RANK != 1 ]; then while [ ! -e third ]; do sleep 0.01; done; exit 0; fi;"
                + "if [ -e second ]; then : > third; exit 0; fi;"
                + "if [ -e first ]; then : > second; exit 3; fi;"
                + ": > first; kill -9 $$";
        assertEquals(0, restarting(0, script).spares(3).run());
        assertEquals(2, errLines().size(), () -> errLines().toString());
        String first = errLines().get(0);
        assertTrue(
                first.matches(
                        "nccl4j: rank 1 \\(pid \\d+\\) was killed by signal 9 \\(SIGKILL\\); spare 0 \\(pid \\d+\\)"
                                + " takes its place, spares left: 2"),
                first);
        String second = errLines().get(1);
        assertTrue(
                second.matches("nccl4j: rank 1 \\(pid \\d+\\) exited with code 3; spare 1 \\(pid \\d+\\) takes its"
                        + " place, spares left: 1"),
                second);
        List<String> lines = outLines().stream().sorted().toList();
        assertEquals(
                List.of(
                        "[0] life of 0",
                        "[1] life of 1",
                        "[1] life of 1",
                        "[1] life of 1",
                        "[2] life of 2",
                        "[spare 0] waits",
                        "[spare 1] waits",
                        "[spare 2] not needed",
                        "[spare 2] waits"),
                lines);
    }

    @Test
    void restartsFollowTheLastSpare() throws Exception {
        String script = BECOME_RANK + "[ $RANK = 2 ] && exit 4; exec sleep 1000";
        assertEquals(4, restarting(1, script).spares(1).run());
        assertEquals(3, errLines().size(), () -> errLines().toString());
        assertTrue(errLines().get(0).contains(" takes its place, spares left: 0"), errLines()::toString);
        assertTrue(errLines().get(1).contains("starting it again, restart 1 of at most 1"), errLines()::toString);
        assertTrue(
                errLines()
                        .get(2)
                        .matches(
                                "nccl4j: rank 2 \\(pid \\d+\\) exited with code 4; spares used before that: 1; restarts"
                                        + " before that: 1"),
                errLines()::toString);
    }

    /** Spare 0 is lost before it is needed, and spare 2 does not end by itself. */
    @Test
    void sparesThatFailDoNotEndTheRun(@TempDir Path folder) throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        String script =
                "cd '" + folder + "'; case \"$NCCL4J_SPARE\" in 0) : > lost; exit 5;; 2) exec sleep 1000;; esac;"
                        + BECOME_RANK + "while [ ! -e lost ]; do sleep 0.01; done; sleep 0.2;"
                        + "[ $RANK = 0 ] && [ -z \"$NCCL4J_SPARE\" ] && exit 6; exit 0";
        Launcher launcher = new Launcher(
                        List.of("/bin/sh", "-c", script),
                        2,
                        Map.of(MarkedProcesses.VARIABLE, marked.value()),
                        Duration.ofMinutes(1),
                        new PrintStream(out, true, StandardCharsets.UTF_8),
                        new PrintStream(err, true, StandardCharsets.UTF_8))
                .spares(3);
        assertEquals(0, launcher.run());
        assertEquals(2, errLines().size(), () -> errLines().toString());
        assertTrue(
                errLines().get(0).matches("nccl4j: spare 0 \\(pid \\d+\\) exited with code 5; spares left: 2"),
                errLines()::toString);
        assertTrue(
                errLines().get(1).matches("nccl4j: rank 0 .* spare 1 \\(pid \\d+\\) takes its place, spares left: 1"),
                errLines()::toString);
        assertEquals(List.of(), marked.running());
    }

    @Test
    void negativeSparesAreRefused() {
        Launcher launcher = restarting(0, "true");
        assertEquals(
                "the number of spares must be at least 0: -1",
                assertThrows(IllegalArgumentException.class, () -> launcher.spares(-1))
                        .getMessage());
    }

    @Test
    void outputLinesAreCompleteAndInOrder() throws Exception {
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

    /** The process has no variable by which the launcher finds it. */
    @Test
    void aProcessThatKeepsTheOutputOpenDoesNotKeepTheLauncher() throws Exception {
        Launcher launcher = new Launcher(
                List.of("/bin/sh", "-c", "(env -i setsid sleep 1000 & echo $!); echo done"),
                1,
                Map.of(),
                null,
                new PrintStream(out, true, StandardCharsets.UTF_8),
                new PrintStream(err, true, StandardCharsets.UTF_8));
        assertEquals(0, launcher.run());
        assertEquals("[0] done", outLines().get(1));
        ProcessHandle sleeper = ProcessHandle.of(
                        Long.parseLong(outLines().get(0).replace("[0] ", "")))
                .orElseThrow();
        assertTrue(sleeper.destroyForcibly());
    }

    @Test
    void timeLimitEndsRanksAndTheirChildren() throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        Launcher launcher = new Launcher(
                List.of("/bin/sh", "-c", "sleep 1000 & wait"),
                2,
                Map.of(MarkedProcesses.VARIABLE, marked.value()),
                Duration.ofSeconds(1),
                System.out,
                new PrintStream(err, true, StandardCharsets.UTF_8));
        assertEquals(Launcher.TIMED_OUT, launcher.run());
        assertEquals(List.of("nccl4j: timed out after 1 s; still running: ranks 0, 1"), errLines());
        assertEquals(List.of(), marked.running());
    }

    @Test
    void orphansOfRanksEndWithTheRun() throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        Map<String, String> environment = Map.of(MarkedProcesses.VARIABLE, marked.value());
        String rank = "sleep 1000 >/dev/null 2>&1 & exit 0";
        Launcher launcher = new Launcher(List.of("/bin/sh", "-c", rank), 2, environment, null, System.out, System.err);
        assertEquals(0, launcher.run());
        assertEquals(List.of(), marked.running());
    }

    /** SIGTERM and SIGINT run the launcher's shutdown hook; SIGKILL does not. */
    @ParameterizedTest
    @CsvSource({
        "KILL, wait, 0",
        "KILL, child, 2",
        "KILL, memory, 0",
        "KILL, stopped, 0",
        "TERM, child, 2",
        "TERM, stopped, 0",
        "KILL, spare, 1",
        "TERM, spare, 1",
        "INT, wait, 0"
    })
    void ranksEndWithTheirLauncher(String signal, String what, int children) throws Exception {
        MarkedProcesses marked = new MarkedProcesses();
        // A build in the background of a shell ignores SIGINT, and its children inherit that.
        List<String> command = new ArrayList<>(List.of("env", "--default-signal=INT"));
        command.addAll(JavaCommand.of(List.of(), TestRank.class.getName(), List.of("launch", what)));
        Process launcher =
                ChildProcesses.start(marked.mark(new ProcessBuilder(command)).redirectErrorStream(true));
        try (BufferedReader lines =
                        new BufferedReader(new InputStreamReader(launcher.getInputStream(), StandardCharsets.UTF_8));
                OutputStream orders = launcher.getOutputStream()) {
            // A rank may be done before the other one begins.
            Set<String> awaited = new TreeSet<>(Set.of("[0] pid ", "[1] pid "));
            if (what.equals("memory")) {
                awaited.addAll(Set.of("[0] out of memory", "[1] out of memory"));
            }
            List<String> seen = new ArrayList<>();
            while (!awaited.isEmpty()) {
                String line = lines.readLine();
                assertNotNull(line, () -> "lacks " + awaited + ": " + seen);
                seen.add(line);
                awaited.removeIf(line::startsWith);
            }
            // The launcher, its guard, two ranks.
            marked.await(4 + children);
            orders.write((signal + "\n").getBytes(StandardCharsets.US_ASCII));
            orders.flush();
            assertTrue(launcher.waitFor(Waiting.LONG.toSeconds(), TimeUnit.SECONDS));
            marked.assertNoneLeft();
        }
    }

    @Test
    void commandThatCannotBeStartedThrows() {
        Launcher launcher = new Launcher(List.of("/no/such/program"), 2, Map.of(), null, System.out, System.err);
        IOException failure = assertThrows(IOException.class, launcher::run);
        assertTrue(failure.getMessage().contains("/no/such/program"));
    }

    @Test
    void rejectsZeroRanks() {
        IllegalArgumentException failure = assertThrows(
                IllegalArgumentException.class,
                () -> new Launcher(List.of("true"), 0, Map.of(), null, System.out, System.err));
        assertEquals("the number of ranks must be at least 1: 0", failure.getMessage());
    }

    /** Every rank prints its process id first. */
    private void assertNoneAlive(int ranks) {
        List<Long> pids = outLines().stream()
                .filter(line -> line.contains("] pid "))
                .map(line -> Long.parseLong(line.substring(line.lastIndexOf(' ') + 1)))
                .toList();
        assertEquals(ranks, pids.size(), () -> outLines().toString());
        for (long pid : pids) {
            assertFalse(ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false));
        }
    }
}
