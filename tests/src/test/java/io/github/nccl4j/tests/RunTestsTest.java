package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What {@code ./nccl4j test} makes of the reports of a Maven that writes them without running anything. */
class RunTestsTest {
    private static final String CASE = "<testcase name=\"a\" classname=\"q.";

    @TempDir
    Path folder;

    @Test
    void casesAreCountedAndReasonsNamed() throws Exception {
        report("One", CASE + "One\"/>" + CASE + "One\"><system-out>&lt;failure</system-out></testcase>");
        report(
                "Two",
                CASE + "Two\"><skipped message=\"Assumption failed: needs mpirun\"/></testcase>"
                        + CASE
                        + "Two\"><skipped><![CDATA[org.opentest4j.TestAbortedException: needs mpirun\n\tat q.Two]]></skipped>"
                        + "</testcase>" + CASE
                        + "Two\"><flakyFailure><stackTrace>x</stackTrace></flakyFailure></testcase>");
        assertEquals("""
                nccl4j: 2 skipped: needs mpirun
                nccl4j: failed, and passed when repeated: Two
                nccl4j: 3 passed, 0 failed, 2 skipped
                """, run(0, 0));
        assertEquals(
                "-B -fae -Dmaven.test.failure.ignore=true -Pspark verify",
                Files.readString(folder.resolve("call")).strip());
    }

    @Test
    void failuresAreNamedAndFailTheRun() throws Exception {
        report("One", CASE + "One\"><failure>x</failure></testcase>" + CASE + "Two\"><error/></testcase>");
        assertEquals("nccl4j: failures in One Two\nnccl4j: 0 passed, 2 failed, 0 skipped\n", run(1, 0));
    }

    @Test
    void classesWithoutAReportFailTheRun() throws Exception {
        report("One", CASE + "One\"/>");
        Path source = folder.resolve("high/src/test/java/q/DeadTest.java");
        Files.createDirectories(source.getParent());
        Files.writeString(source, "");
        assertEquals(
                "nccl4j: DeadTest has no report: its tests did not run to the end\nnccl4j: 1 passed, 0 failed, 0 skipped\n",
                run(1, 0));
    }

    @Test
    void theCodeOfMavenIsKept() throws Exception {
        report("One", CASE + "One\"/>");
        assertEquals("nccl4j: 1 passed, 0 failed, 0 skipped\n", run(3, 3));
    }

    /** Has Maven write a report. */
    private void report(String name, String cases) throws IOException {
        Path made = Files.createDirectories(folder.resolve("made"));
        Files.writeString(made.resolve("TEST-q." + name + ".xml"), "<testsuite>" + cases + "</testsuite>");
    }

    /** Runs the program, and returns its messages. */
    private String run(int code, int codeOfMaven) throws Exception {
        Path reports = Files.createDirectories(folder.resolve("high/target/surefire-reports"));
        Files.writeString(reports.resolve("TEST-q.Old.xml"), "<testsuite>" + CASE + "Old\"/></testsuite>");
        age(reports.resolve("TEST-q.Old.xml"));
        Path programs = Files.createDirectories(folder.resolve("programs"));
        Path maven = Files.writeString(
                programs.resolve("mvn"),
                "#!/bin/sh\necho \"$*\" >call\ncp made/* high/target/surefire-reports\nexit " + codeOfMaven + "\n");
        assertTrue(maven.toFile().setExecutable(true));
        ProcessBuilder builder = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/java",
                        "-XX:TieredStopAtLevel=1",
                        "-XX:+UseSerialGC",
                        Path.of("src/tool/java/RunTests.java").toAbsolutePath().toString(),
                        "-Pspark")
                .directory(folder.toFile())
                .redirectErrorStream(true);
        builder.environment().merge("PATH", programs.toString(), (old, first) -> first + ":" + old);
        Process process = ChildProcesses.start(builder);
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(code, process.waitFor(), output);
        return output;
    }

    private static void age(Path file) {
        assertTrue(file.toFile().setLastModified(System.currentTimeMillis() - 60_000));
    }
}
