package io.github.nccl4j.tests;

import static io.github.nccl4j.testing.Expect.assertContains;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The C locale, in which Java cannot spell the name of a folder such as "jürgen". The shell makes it, because these tests may
 * run in such a locale themselves: in commands, %C3%BC stands for the two bytes of the letter, %FC for what is not UTF-8.
 */
class UnspellablePathsTest {
    private static final String SPELLING = "for word; do shift; set -- \"$@\" \"$(printf '%s' \"$word\""
            + " | sed \"s/%C3%BC/$(printf '\\303\\274')/g; s/%FC/$(printf '\\374')/g\")\"; done; exec \"$@\"";

    @TempDir
    Path temporary;

    private String folder;

    @BeforeEach
    void makeFolder() throws IOException, InterruptedException {
        folder = temporary + "/j%C3%BCrgen";
        shell("mkdir", folder);
    }

    private static void shell(String... command) throws IOException, InterruptedException {
        List<String> all = new ArrayList<>(List.of("sh", "-c", SPELLING, "sh"));
        all.addAll(List.of(command));
        assertEquals(0, new ProcessBuilder(all).inheritIO().start().waitFor());
    }

    /** Runs a scenario in the C locale. */
    private static String run(List<String> environment, List<String> properties, String... scenario) {
        ChildJvm jvm = new ChildJvm().by("sh", "-c", SPELLING, "sh", "env", "LC_ALL=C");
        environment.forEach(jvm::by);
        properties.forEach(property -> jvm.option("-D" + property));
        // For what the child prints.
        jvm.property("stdout.encoding", "UTF-8").property("sun.stdout.encoding", "UTF-8");
        ChildJvm.Outcome outcome = jvm.run(LoadingScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output();
    }

    /** A library in the folder, under a name. */
    private String library(String name) throws IOException, InterruptedException {
        String path = folder + "/" + name;
        shell("cp", StubLibraries.logging(temporary, 22803).toString(), path);
        return path;
    }

    private static String umlaut(String path) {
        return path.replace("%C3%BC", "\u00fc");
    }

    @Test
    void theSearchGoesOnWhereAFolderCannotBeSpelled() throws IOException, InterruptedException {
        shell("mkdir", "-p", folder + "/bin", folder + "/.local/lib/python3.12/site-packages");
        shell("cp", "/bin/true", folder + "/bin/python3");
        List<String> environment = List.of(
                "HOME=" + folder,
                "PATH=" + temporary + "/caf%FC:" + folder + "/bin:/usr/bin:/bin",
                "NCCL_HOME=" + folder,
                "VIRTUAL_ENV=" + temporary + "/%FC",
                "LD_LIBRARY_PATH=");
        String output = run(environment, List.of("nccl4j.engine=nccl"), "candidates");
        assertContains(output, "libnccl.so.2: cannot open shared object file");
        assertContains(output, umlaut(folder) + "/lib/libnccl.so.2: No such file or directory\n");
        assertContains(
                output,
                umlaut(folder)
                        + "/.local/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2: No such file or directory\n");
        assertContains(
                output, "/\ufffd: the locale, whose encoding is US-ASCII, cannot spell it; set LC_ALL=C.UTF-8\n");
        assertContains(output, "/caf\ufffd: the locale, whose encoding is US-ASCII, cannot spell it");
        String error = run(environment, List.of("nccl4j.engine=nccl"), "call", "ncclGetVersion");
        assertContains(error, "NCCL could not be loaded; tried in this order:\n  libnccl.so.2: ");
        assertContains(error, "cannot spell it; set LC_ALL=C.UTF-8\n");
    }

    @Test
    void aLibraryThatTheLinkerKnowsIsLoadedWhateverHomeIs() throws IOException {
        Files.copy(StubLibraries.small(temporary, 22105), temporary.resolve("libnccl.so.2"));
        List<String> environment = List.of("HOME=" + temporary + "/%FC", "LD_LIBRARY_PATH=" + temporary);
        assertContains(run(environment, List.of("nccl4j.engine=nccl"), "describe"), "version 2.21.5");
    }

    @Test
    void aHomeThatCannotBeSpelledGetsNoNeighbourOfAnotherName() throws IOException {
        List<String> properties = List.of(
                "org.bytedeco.javacpp.cachedir=",
                "user.home=" + folder,
                "java.io.tmpdir=" + temporary,
                "user.name=me",
                "nccl4j.engine=host");
        assertContains(run(List.of(), properties, "describe"), "path " + temporary + "/.javacpp-me/cache/");
        try (Stream<Path> entries = Files.list(temporary)) {
            // The library's folder and JavaCPP's cache.
            assertEquals(2, entries.count());
        }
    }

    @Test
    void aVariableAndAPropertyNameALibrary() throws IOException, InterruptedException {
        String library = library("libnccl.so.2");
        String expected = "path " + umlaut(library) + "\nversion 2.28.3";
        assertContains(run(List.of("NCCL4J_LIBRARY=" + library), List.of(), "describe"), expected);
        assertContains(run(List.of(), List.of("nccl4j.library=" + library), "describe"), expected);
        // What a program names in Java is no text of the locale.
        assertContains(run(List.of(), List.of(), "choose-unspellable", temporary.toString()), expected);
    }

    @Test
    void aLibraryWhoseBytesAreUnknownIsRefusedWithTheCauseAndTheRemedy() {
        String message = "/libnccl.so.2: the locale, whose encoding is US-ASCII, cannot spell it; set LC_ALL=C.UTF-8\n";
        for (String error : List.of(
                run(List.of("NCCL4J_LIBRARY=/%FC/libnccl.so.2"), List.of(), "call", "ncclGetVersion"),
                run(List.of(), List.of("nccl4j.library=/%FC/libnccl.so.2"), "call", "ncclGetVersion"))) {
            assertContains(error, message);
        }
    }

    @Test
    void highlevelReadsAndWritesThere() throws IOException, InterruptedException {
        String library = library("libnccl.so.2");
        String output = run(
                List.of(
                        "NCCL4J_LIBRARY=" + library,
                        "NCCL4J_RECORDER_DUMP=" + folder,
                        "NCCL_DEBUG_FILE=" + folder + "/nccl.log",
                        "NCCL4J_LOG=WARN"),
                List.of(),
                "unspellable-failure");
        assertContains(output, "library exists: true\n");
        assertContains(output, "[NCCL 2.28.3 from ".replace("NCCL", "host engine") + umlaut(library) + "]");
        assertContains(output, "\nNCCL warned: rank 0: comm 0x");
        assertContains(output, "\nFlight recorder: " + umlaut(folder) + "/nccl4j-");
        assertContains(output, "\nlibrary of the exception exists: true\n");
        assertFalse(output.contains("could not be written"), output);
    }

    @Test
    void aRecorderThatCannotWriteHidesNoFailure() throws IOException, InterruptedException {
        String output = run(
                List.of("NCCL4J_LIBRARY=" + library("libnccl.so.2"), "NCCL4J_RECORDER_DUMP=" + temporary + "/%FC"),
                List.of(),
                "unspellable-failure");
        assertContains(output, "ncclSystemError (2)");
        assertContains(output, "could not be written: java.nio.file.InvalidPathException: the locale");
    }
}
