package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.ToolsJar;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs {@code doctor} as users do, with libraries of every machine: the host engine, and a file that is not a library. */
@Timeout(600)
class DoctorCommandTest {

    private record Outcome(int code, String output) {}

    private static Outcome doctor(String... arguments) throws Exception {
        List<String> words = new ArrayList<>(List.of("doctor"));
        words.addAll(List.of(arguments));
        Process process = ChildProcesses.start(ToolsJar.command(words));
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Outcome(process.waitFor(), output);
    }

    private static void assertContains(Outcome outcome, String part) {
        assertTrue(outcome.output().contains(part), () -> "'" + part + "' is not in:\n" + outcome.output());
    }

    @Test
    void hostEnginePassesTheSelfTest() throws Exception {
        Outcome outcome = doctor("--engine", "host");
        assertContains(outcome, "ok       the host engine, with the functions of NCCL ");
        assertContains(outcome, "chosen by --engine host");
        assertContains(outcome, "ok       the host engine needs no GPU");
        assertContains(outcome, "ok       2 ranks on the host engine: every element of the all-reduces was right");
    }

    @Test
    void unusableLibraryIsReportedWithTheReason(@TempDir Path folder) throws Exception {
        Path broken = Files.writeString(folder.resolve("libnccl.so.2"), "no library");
        Outcome outcome = doctor("--library", broken.toString(), "--no-self-test");
        assertEquals(1, outcome.code(), outcome.output());
        assertContains(outcome, "problem  --library does not name a loadable library [NCCL4J-0101]");
        assertContains(outcome, broken + ": not loaded: not a shared library (no ELF header)");
        assertContains(outcome, "-> Correct the path");
    }

    @Test
    void printsOneJsonObject() throws Exception {
        Outcome outcome = doctor("--engine", "host", "--no-self-test", "--json");
        assertTrue(
                outcome.output().matches("(?s)\\{\"title\":\"nccl4j .*\"findings\":\\[\\{.*}]}\\R"), outcome.output());
        assertContains(outcome, "\"id\":\"library.loaded\",\"help\":\"\",\"level\":\"ok\"");
    }

    @Test
    void wrongArgumentsAreReported() throws Exception {
        assertEquals(2, doctor("--timeout", "0").code());
        assertContains(doctor("--engine", "cuda", "--no-self-test"), "it must be nccl, rccl, host or auto");
    }
}
