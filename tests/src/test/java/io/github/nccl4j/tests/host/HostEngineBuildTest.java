package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.Cxx;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The script that compiles the host engine, with a compiler that only records its options. */
class HostEngineBuildTest {
    private static final Path SCRIPT = Path.of("../nccl-host/build-native.sh");

    @TempDir
    Path folder;

    @Test
    void warningsAreErrorsWhereTheBuildIsStrict() throws IOException {
        List<String> compilations = build("-u", "NCCL4J_STRICT");
        assertTrue(compilations.size() > 10, compilations.toString());
        assertFalse(compilations.stream().anyMatch(line -> line.contains("-Werror")), compilations.toString());

        List<String> strict = build("NCCL4J_STRICT=true");
        assertEquals(compilations.size(), strict.size(), "compiles again with other options");
        assertTrue(strict.stream().allMatch(line -> line.contains(" -Werror ")), strict.toString());
        assertEquals(List.of(), build("NCCL4J_STRICT=true"), "compiles only once with the same options");
    }

    @Test
    void theEngineTellsTheReleaseThatItBelongsTo() throws IOException {
        String pom = Files.readString(Path.of("../pom.xml"));
        String version = pom.substring(pom.indexOf("<version>") + "<version>".length(), pom.indexOf("</version>"));
        String header = Files.readString(SCRIPT.resolveSibling("src/main/cpp/proof.h"));
        assertTrue(header.contains("kLibrary[] = \"" + version + "\""), "kLibrary must be " + version);
    }

    /** Runs the script in a changed environment, and returns the command lines of its compilations. */
    private List<String> build(String... environment) throws IOException {
        Path record = folder.resolve("record");
        Files.deleteIfExists(record);
        Path compiler = Files.writeString(folder.resolve("compiler"), """
                record=$1
                echo "$*" >>"$record"
                while [ $# -gt 0 ]; do
                  [ "$1" != -o ] || : >"$2"
                  shift
                done
                """);
        Path library = folder.resolve("native/linux/io/github/nccl4j/host/linux/library.so");
        List<String> command = new ArrayList<>(List.of("env"));
        command.addAll(List.of(environment));
        command.addAll(List.of(SCRIPT.toString(), "sh " + compiler + " " + record, library.toString()));
        Cxx.output(command);
        return Files.exists(record)
                ? Files.readAllLines(record).stream()
                        .filter(line -> line.contains(" -c "))
                        .toList()
                : List.of();
    }
}
