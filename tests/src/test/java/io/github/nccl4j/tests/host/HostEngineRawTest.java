package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where the system refuses something, or others disturb, callers of the C API get an error in time, or notice nothing. */
@Timeout(value = 10, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostEngineRawTest {
    /** Of an init that others disturb, who do so for eight. */
    private static final int MOST_MILLIS = 5000;

    @TempDir
    static Path folder;

    private static Path program;

    @BeforeAll
    static void compile() throws IOException {
        program = EngineProgram.compile(folder, "raw");
    }

    /** What a scenario prints. It ends itself by SIGALRM where it hangs. */
    private static List<String> lines(String scenario, Map<String, String> environment) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(program.toString(), scenario).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL4J_"));
        builder.environment().putAll(environment);
        Process process = ChildProcesses.start(builder);
        try {
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertEquals(0, process.waitFor(), scenario + ": " + output);
            return output.lines().toList();
        } finally {
            ChildProcesses.kill(process);
        }
    }

    private static List<String> lines(String scenario) throws Exception {
        return lines(scenario, Map.of("NCCL4J_HOST_INIT_TIMEOUT", "1"));
    }

    private static void assertAll(List<String> lines, int ranks, int code, String words) {
        assertEquals(ranks, lines.size(), lines.toString());
        for (String line : lines) {
            assertTrue(line.matches("rank \\d: " + code + " .*"), lines.toString());
            assertTrue(line.contains(words), lines.toString());
        }
    }

    @Test
    void aLaneThatTheSystemDoesNotCarryFailsTheRegistrationEverywhere() throws Exception {
        assertAll(lines("lanes-refused-for-ever"), 3, nccl.ncclSystemError, "could not send a socket to rank");
    }

    @Test
    void aLaneThatTheSystemDoesNotCarryYetIsSentLater() throws Exception {
        Map<String, String> patient = Map.of("NCCL4J_HOST_INIT_TIMEOUT", "30");
        assertAll(lines("lanes-refused-for-a-while", patient), 3, nccl.ncclSuccess, "");
        assertAll(lines("signal-lanes-refused-for-a-while", patient), 2, nccl.ncclSuccess, "");
    }

    @Test
    void aLaneThatARankCannotTakeFailsTheRegistrationEverywhere() throws Exception {
        assertAll(lines("lane-not-taken"), 3, nccl.ncclSystemError, "rank 1 could not take a socket from rank 0");
    }

    @Test
    void aBellWithoutMemoryInTheKernelIsRungAgain() throws Exception {
        assertAll(lines("bells-refused-once"), 2, nccl.ncclSuccess, "");
        assertAll(lines("bells-refused-for-ever"), 2, nccl.ncclSystemError, "cannot send to another rank");
    }

    @Test
    void aRankThatFailsAndCannotSayWhyIsGoneForTheOthers() throws Exception {
        List<String> lines = lines("news-refused", Map.of("NCCL4J_HOST_FAULT", "result=5,rank=1")).stream()
                .sorted()
                .toList();
        assertAll(lines.subList(0, 1), 1, nccl.ncclRemoteError, "went away during WaitSignal");
        assertTrue(lines.get(1).startsWith("rank 1: " + nccl.ncclInvalidUsage + " AllReduce"), lines.toString());
    }

    @Test
    void memoryThatThePeerCouldTakeAwayIsRefused() throws Exception {
        List<String> lines = lines("unsealed-memory").stream().sorted().toList();
        assertAll(
                lines.subList(0, 1),
                1,
                nccl.ncclInternalError,
                "the memory of a connection must have F_SEAL_SHRINK (2), but its seals are 0");
        // It may have noticed before the reason came.
        assertTrue(lines.get(1).matches("rank 1: [1-6] .+"), lines.toString());
    }

    @Test
    void severalThreadsMayAbortOneCommunicatorThatIsBeingMade() throws Exception {
        assertEquals(List.of("all aborted"), lines("abort-by-many"));
    }

    /** Rank 1 does not make them. */
    @ParameterizedTest
    @ValueSource(strings = {"abort-a-split", "abort-one-split-of-two"})
    void aSplitThatOthersDoNotJoinIsEndedByTheAbortOfItsChild(String scenario) throws Exception {
        assertAll(lines(scenario), 1, nccl.ncclInternalError, "CommSplit was aborted");
    }

    @ParameterizedTest
    @ValueSource(strings = {"connected-by-this-user", "connected-by-other-users"})
    void othersWhoConnectOverAndOverDoNotHoldUpAnInit(String scenario) throws Exception {
        List<String> lines = lines(scenario, Map.of());
        int millis = Integer.parseInt(lines.get(0).replace(" ms", ""));
        assertTrue(millis < MOST_MILLIS, lines.toString());
    }

    @Test
    void aLibraryThatIsClosedServesTheIdsItMade() throws Exception {
        Path unload = Cxx.program(folder, "unload", EngineProgram.source("unload"), "-I" + folder, "-pthread", "-ldl");
        assertEquals(
                "the engine stays",
                Cxx.output(List.of(unload.toString(), NativeLibrary.path())).strip());
    }

    @Test
    void ofRanksThatAreMissingTheFirstAreNamed() throws Exception {
        String line = lines("far-too-many-ranks").get(0);
        assertTrue(line.matches("\\d+ MiB, " + nccl.ncclTimeout + " .*"), line);
        assertTrue(Integer.parseInt(line.replaceAll(" MiB.*", "")) < 32, line);
        assertTrue(
                line.endsWith("for ranks 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 99999983 more of "
                        + "100000000"),
                line);
    }

    @Test
    void whereTheSystemDoesNotLetARankWaitTheOperationFails() throws Exception {
        assertEquals(
                List.of("rank 0: " + nccl.ncclSystemError + " cannot wait for other ranks: Invalid argument"),
                lines("no-poll"));
    }

    @Test
    void aServerWithoutDescriptorsTellsTheRanks() throws Exception {
        String reason = "which made the unique id: cannot accept a connection: Too many open files";
        assertAll(lines("server-without-descriptors"), 2, nccl.ncclSystemError, reason);
    }

    @Test
    void aThreadThatCannotStartIsNamed() throws Exception {
        assertEquals(
                List.of(
                        "rank 0: " + nccl.ncclSystemError
                                + " cannot start the thread that serves a unique id: Resource temporarily unavailable",
                        "rank 0: " + nccl.ncclSystemError
                                + " cannot start the thread that makes a communicator: Resource temporarily unavailable"),
                lines("no-threads"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"init-all-without-descriptors", "init-all-without-connections"})
    void anInitOfAllRanksThatFailsLeavesNothingBehind(String scenario) throws Exception {
        List<String> lines = lines(scenario, Map.of());
        assertTrue(lines.get(0).startsWith("rank 0: " + nccl.ncclSystemError + " "), lines.toString());
        assertTrue(lines.get(0).endsWith(": Too many open files"), lines.toString());
        assertEquals(List.of("0 descriptors more"), lines.subList(1, lines.size()));
    }

    @Test
    void numbersAreReadAndWrittenWithAPointWhateverTheLocale() throws Exception {
        Map<String, String> environment = new HashMap<>(CommaLocale.in(folder));
        environment.put("NCCL4J_HOST_INIT_TIMEOUT", "0.5");
        environment.put("NCCL4J_HOST_FAULT", "delay=0.1,op=0");
        List<String> lines = new ArrayList<>(lines("in-locale", environment));
        assumeTrue(lines.get(0).equals(","), "the C library did not take the locale of this test");
        // The deadline, and what a busy machine adds to it.
        assertTrue(
                lines.get(7).matches(nccl.ncclTimeout + " waited (0\\.[5-9]|\\d+\\.\\d) s for rank 1 of 2"),
                lines.get(7));
        lines.set(7, "waited");
        assertEquals(
                List.of(
                        ",",
                        "0.5",
                        "NCCL4J_HOST_INIT_TIMEOUT=0.5 (default 60)",
                        "NCCL4J_HOST_OP_TIMEOUT=0 (default 0)",
                        "NCCL4J_HOST_SHARED_MEMORY=1 (default 1)",
                        "NCCL4J_HOST_SINGLE_COPY=1 (default 1)",
                        "NCCL4J_HOST_ALLTOALLV=11 (default 11)",
                        "waited",
                        "soon",
                        ","),
                lines);
    }
}
