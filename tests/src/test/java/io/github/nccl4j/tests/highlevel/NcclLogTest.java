package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.testing.Expect.assertContains;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** NCCL's log as programs get it, from a library that writes as NCCL does. */
class NcclLogTest {
    @TempDir
    Path folder;

    private ChildJvm jvm(int versionCode) throws IOException {
        Files.createDirectories(folder.resolve("tmp"));
        return new ChildJvm()
                .property("nccl4j.library", StubLibraries.logging(folder, versionCode))
                .property("java.io.tmpdir", folder.resolve("tmp"));
    }

    private static String run(ChildJvm jvm, String... scenario) {
        ChildJvm.Outcome outcome = jvm.run(LogScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output();
    }

    @ParameterizedTest
    @ValueSource(ints = {22304, 22803})
    void exceptionsCarryTheWarningsAndTheLoggerGetsAll(int versionCode) throws IOException {
        String place = versionCode < 22400 ? "misc/socket.cc:568" : "misc/socket.cc:568 (connect)";
        String output = run(jvm(versionCode), "failure", "4");
        String first = "rank 1 of communicator 'train': comm 0x";
        String second = "rank 1 of communicator 'train': giving up (" + place + ")\n";
        assertContains(
                output,
                "NCCL says: giving up",
                "\nNCCL warned: " + first,
                "carried: " + first,
                "carried: " + second,
                "logged: INFO: NCCL version 2.28.3+cuda13.0\n",
                "rank 1 nranks 2 - Init COMPLETE\n",
                "logged: WARNING: " + first,
                "logged: WARNING: " + second);
        assertFalse(output.contains("NCCL warned: rank 1 of communicator 'train': giving up"), output);
        try (Stream<Path> left = Files.list(folder.resolve("tmp"))) {
            assertEquals(
                    List.of(),
                    left.filter(file -> file.getFileName().toString().startsWith("nccl4j-log"))
                            .toList());
        }
    }

    @Test
    void failureQuotesOnlyNewerMessages() throws IOException {
        String output = run(jvm(22803).environment("STUB_LINES", "1"), "old");
        assertContains(output, "ncclReduce: '' []\n", "\nncclAllReduce: 'giving up' [comm 0x", "in all: 5\n");
        assertEquals(3, output.split("ncclAllReduce: 'giving up'", -1).length, output);
    }

    /** More than a pipe holds, so that a library which wrote into one would wait for ever. */
    @Test
    void slowLoggerDelaysNothingAndLosesNothing() throws IOException {
        String output = run(jvm(22803).environment("STUB_LINES", "20000"), "slow", "20000");
        assertEquals("last warning while the logger waits: line 19999\n20000 lines, in order: true\n", output);
    }

    @Test
    void readsNothingUnlessStarted() throws IOException {
        String output = run(jvm(22803), "failure", "0");
        assertContains(output, "NCCL says: giving up");
        assertFalse(output.contains("warned") || output.contains("carried") || output.contains("logged"), output);
    }

    /** Also where the first call of NCCL makes a unique id: 2.23 reads its settings then, and not again. */
    @Test
    void propertyStartsTheLog() throws IOException {
        for (int versionCode : List.of(22304, 22803)) {
            assertContains(
                    run(jvm(versionCode).property("nccl4j.log", "warn"), "failure", "3"),
                    "carried: ",
                    "logged: INFO: NCCL version 2.28.3+cuda13.0\n",
                    "logged: WARNING: rank 1");
        }
        ChildJvm.Outcome outcome = jvm(22803).property("nccl4j.log", "loud").run(LogScenarios.class, "failure", "0");
        assertEquals(1, outcome.exitCode());
        assertContains(outcome.output(), "nccl4j.log (NCCL4J_LOG) is 'loud'; it must be WARN, INFO or TRACE");
    }

    @Test
    void environmentTakesPrecedence() throws IOException {
        String output = run(
                jvm(22803).environment("NCCL_DEBUG", "WARN").environment("NCCL_DEBUG_FILE", folder + "/log.%p"),
                "failure",
                "3");
        assertContains(output, "carried: rank 1 of communicator 'train': giving up");
        assertFalse(output.contains("Init COMPLETE"), output);
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(
                    1,
                    files.filter(file -> file.getFileName().toString().startsWith("log."))
                            .count());
        }
    }

    @Test
    void lateStartNeedsLibraryThatRereadsSettings() throws IOException {
        assertEquals(
                "started: true\nthe log was started with level WARN; it can't be changed to INFO\n",
                run(jvm(22403), "late"));
        assertEquals(
                "the log must be started before NCCL is used: NCCL 2.23.4 is loaded, and reads its settings once (since"
                        + " 2.24.3, ncclResetDebugInit can have them read again)\n",
                run(jvm(22304), "late"));
    }
}
