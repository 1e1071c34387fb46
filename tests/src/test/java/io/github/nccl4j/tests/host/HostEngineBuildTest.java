package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.Cxx;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The script that compiles the host engine, with a compiler that only records its options, and lists what a source includes. */
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
        String header = Files.readString(SCRIPT.resolveSibling("src/main/cpp/transport/proof.h"));
        assertTrue(header.contains("kLibrary[] = \"" + version + "\""), "kLibrary must be " + version);
    }

    @Test
    void onlyWhatIncludesAChangedFileIsCompiledAgain() throws IOException {
        // With a space in its name, which the compiler's lists escape.
        Path copy = folder.resolve("a copy/nccl-host");
        Path sources = Files.createDirectories(copy.resolve("src/main/cpp/folder"));
        Path portable = folder.resolve("a copy/nccl-presets/src/main/native/portable");
        Files.createDirectories(portable);
        Files.createDirectories(portable.resolveSibling("include"));
        Files.writeString(portable.resolve("old.h"), "");
        for (String source : List.of("one.cpp", "two.cpp", "three.cpp")) {
            Files.writeString(sources.resolve(source), source.equals("one.cpp") ? "" : "#include \"part.h\"\n");
        }
        Path header = Files.writeString(sources.resolve("part.h"), "");
        Path script = Files.copy(SCRIPT, copy.resolve("build-native.sh"), StandardCopyOption.COPY_ATTRIBUTES);
        Path tellApart = Path.of("../nccl-presets/tell-apart.sh");
        Files.copy(tellApart, folder.resolve("a copy/nccl-presets/tell-apart.sh"), StandardCopyOption.COPY_ATTRIBUTES);

        assertEquals(List.of("one.cpp", "three.cpp", "two.cpp"), sources(buildWith(script)));
        change(header);
        assertEquals(List.of("three.cpp", "two.cpp"), sources(buildWith(script)));
        change(sources.resolve("one.cpp"));
        assertEquals(List.of("one.cpp"), sources(buildWith(script)));
        change(script);
        assertEquals(3, buildWith(script).size(), "options may have changed with the script");
        Files.delete(sources.resolve("one.cpp"));
        change(portable.resolve("old.h"));
        assertEquals(List.of(), buildWith(script));
        assertFalse(Files.exists(folder.resolve("objects/linux/one.o")), "an object without a source is linked");
    }

    /** Makes a file younger than all others. */
    private void change(Path file) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path other : all.filter(Files::isRegularFile).toList()) {
                long time = Files.getLastModifiedTime(other).toMillis();
                Files.setLastModifiedTime(other, FileTime.fromMillis(time - 10_000));
            }
        }
        Files.setLastModifiedTime(file, FileTime.fromMillis(System.currentTimeMillis() - 5_000));
    }

    /** The names of the sources in command lines of compilations. */
    private static List<String> sources(List<String> compilations) {
        return compilations.stream()
                .map(line -> line.replaceAll(".* -c .*/([a-z]+\\.cpp) -o .*", "$1"))
                .sorted()
                .toList();
    }

    private List<String> build(String... environment) throws IOException {
        return buildWith(SCRIPT, environment);
    }

    /** Runs a script in a changed environment, and returns the command lines of its compilations. */
    private List<String> buildWith(Path script, String... environment) throws IOException {
        Path record = folder.resolve("record");
        Files.deleteIfExists(record);
        Path compiler = Files.writeString(folder.resolve("compiler"), """
                record=$1
                echo "$*" >>"$record"
                while [ $# -gt 0 ]; do
                  case $1 in
                    -c) source=$2 ;;
                    -o) output=$2 ;;
                  esac
                  shift
                done
                : >"$output"
                [ -n "$source" ] || exit 0
                folder=$(dirname "$source" | sed 's/ /\\\\ /g')
                printf '%s\\n' "$output: $folder/$(basename "$source") \\\\" >"${output%.o}.d"
                grep -q 'include "part.h"' "$source" && printf '%s\\n' " $folder/part.h" >>"${output%.o}.d" || true
                """);
        Path library = folder.resolve("native/linux/io/github/nccl4j/host/linux/library.so");
        List<String> command = new ArrayList<>(List.of("env"));
        command.addAll(List.of(environment));
        command.addAll(List.of(script.toString(), "sh " + compiler + " " + record, library.toString()));
        Cxx.output(command);
        return Files.exists(record)
                ? Files.readAllLines(record).stream()
                        .filter(line -> line.contains(" -c "))
                        .toList()
                : List.of();
    }
}
