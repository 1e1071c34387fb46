package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The command {@code check-header}; the tests of {@code nccl-header} cover the comparison. */
class CheckHeaderTest {

    @TempDir
    Path folder;

    private record Outcome(int code, String out, String err) {}

    private static Outcome check(Path... paths) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        String[] arguments = Stream.concat(
                        Stream.of("check-header"), Stream.of(paths).map(Path::toString))
                .toArray(String[]::new);
        return new Outcome(command.execute(arguments), out.toString(), err.toString());
    }

    private static String ourHeader() throws IOException {
        return resource("include/nccl.h");
    }

    private static String resource(String name) throws IOException {
        try (var text = nccl.class.getResourceAsStream("/io/github/nccl4j/" + name)) {
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void equalHeaderPasses() throws IOException {
        Files.writeString(folder.resolve("nccl.h"), ourHeader());
        Outcome outcome = check(folder);
        assertEquals(0, outcome.code(), outcome.toString());
        assertTrue(outcome.out().startsWith("nccl.h 2.32.3: 0 differences, "), outcome.out());
    }

    @Test
    void differentConstantFails() throws IOException {
        String changed = ourHeader().replace("#define NCCL_SPLIT_NOCOLOR -1", "#define NCCL_SPLIT_NOCOLOR -2");
        Outcome outcome = check(Files.writeString(folder.resolve("nccl.h"), changed));
        assertEquals(1, outcome.code(), outcome.toString());
        assertTrue(outcome.out().contains("NCCL_SPLIT_NOCOLOR"), outcome.out());
    }

    @Test
    void eachOfSeveralReportsHasItsPath() throws IOException {
        Path first = Files.writeString(folder.resolve("first.h"), ourHeader().replace("NOCOLOR -1", "NOCOLOR -2"));
        Path second = Files.writeString(folder.resolve("second.h"), ourHeader());
        Outcome outcome = check(first, second);
        assertEquals(1, outcome.code(), outcome.toString());
        int reports = outcome.out().indexOf(second + ":\n");
        assertTrue(outcome.out().startsWith(first + ":\n"), outcome.out());
        assertTrue(outcome.out().substring(0, reports).contains("NCCL_SPLIT_NOCOLOR"), outcome.out());
        assertFalse(outcome.out().substring(reports).contains("NCCL_SPLIT_NOCOLOR"), outcome.out());
    }

    @Test
    void headersOfTheExtensionsAreCompared() throws IOException {
        Files.writeString(folder.resolve("nccl_m2n.h"), resource("extensions/include/nccl_m2n.h"));
        String changed = resource("extensions/include/nccl_ep.h").replace("unsigned int ndim;", "size_t ndim;");
        Files.writeString(folder.resolve("nccl_ep.h"), changed);
        Outcome outcome = check(folder);
        assertEquals(1, outcome.code(), outcome.toString());
        assertTrue(outcome.out().startsWith("nccl_m2n.h 0.2.0: 0 differences, "), outcome.out());
        assertTrue(outcome.out().contains("offset ncclEpTensor_t.data: ours 16, theirs 24"), outcome.out());
        assertEquals(0, check(folder.resolve("nccl_m2n.h")).code());
    }

    @Test
    void missingPathIsAnArgumentError() {
        Outcome outcome = check(folder.resolve("none"));
        assertEquals(2, outcome.code(), outcome.toString());
        assertTrue(outcome.err().contains("no such file or folder: " + folder.resolve("none")), outcome.err());
    }
}
