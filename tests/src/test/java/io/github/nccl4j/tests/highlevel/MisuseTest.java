package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.FakeCuda;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * Misuse throws an exception that names the error and its reason before NCCL is called; afterwards the communicators
 * work, except where they are documented not to.
 */
class MisuseTest {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    @TempDir
    static Path folder;

    @Test
    void misusesHaveUniqueNames() {
        for (boolean onHost : List.of(true, false)) {
            List<Misuse> all = MisuseScenarios.all(onHost);
            assertTrue(all.size() >= 150, all.size() + " misuses");
            assertEquals(all.size(), all.stream().map(Misuse::name).distinct().count(), "names");
        }
    }

    @TestFactory
    Stream<DynamicTest> onTheHostEngine() {
        return MisuseScenarios.all(true).stream()
                .map(misuse -> dynamicTest(misuse.name(), () -> assertTimeoutPreemptively(LIMIT, misuse::run)));
    }

    /** With a library that counts its calls, and two devices. */
    @TestFactory
    Stream<DynamicTest> withoutACallOfTheLibrary() throws IOException {
        return onTheStub(23007, MisuseScenarios.all(false));
    }

    @TestFactory
    Stream<DynamicTest> withAnOldLibrary() throws IOException {
        return onTheStub(OldLibraryMisuses.VERSION_CODE, OldLibraryMisuses.all());
    }

    @TestFactory
    Stream<DynamicTest> withALibraryOfConfigurations() throws IOException {
        return onTheStub(CollectiveConfigMisuses.VERSION_CODE, CollectiveConfigMisuses.all(false));
    }

    @TestFactory
    Stream<DynamicTest> withTheFirstLibraryOfConfigurations() throws IOException {
        return onTheStub(CollectiveConfigMisuses.FIRST_VERSION_CODE, CollectiveConfigMisuses.ofTheFirst());
    }

    @TestFactory
    Stream<DynamicTest> withAFaultyLibrary() throws IOException {
        return onTheStub(FaultyLibraryMisuses.VERSION_CODE, FaultyLibraryMisuses.all());
    }

    private static Stream<DynamicTest> onTheStub(int versionCode, List<Misuse> misuses) throws IOException {
        Path home = Files.createDirectories(folder.resolve("stub" + versionCode));
        FakeCuda cuda = FakeCuda.build(home.resolve("cuda"));
        Path calls = Files.createFile(home.resolve("calls"));
        ChildJvm.Outcome outcome = cuda.jvm(new ChildJvm())
                .environment("STUB_CALLS", calls.toString())
                .property("stub.calls", calls)
                // Creates hundreds of worlds, on a machine that may be busy.
                .limit(Duration.ofMinutes(5))
                .property("nccl4j.library", StubLibraries.recording(home, versionCode))
                .run(MisuseScenarios.class);
        Map<String, String> results = results(outcome.output());
        return Stream.concat(
                misuses.stream()
                        .map(misuse -> dynamicTest(
                                misuse.name(),
                                () -> assertEquals(
                                        MisuseScenarios.OK, results.getOrDefault(misuse.name(), "did not run")))),
                Stream.of(dynamicTest("nothing is left", () -> {
                    assertEquals(0, outcome.exitCode(), outcome.output());
                    assertTrue(outcome.output().contains(FakeCuda.NOTHING_LEFT), outcome::output);
                })));
    }

    /** By name: "ok", or the failure. */
    private static Map<String, String> results(String output) {
        Map<String, String> results = new TreeMap<>();
        String name = null;
        for (String line : output.lines().collect(Collectors.toList())) {
            if (line.startsWith(MisuseScenarios.OK)) {
                name = line.substring(MisuseScenarios.OK.length());
                results.put(name, MisuseScenarios.OK);
            } else if (line.startsWith(MisuseScenarios.FAILED)) {
                name = line.substring(MisuseScenarios.FAILED.length());
                results.put(name, "");
            } else if (name != null) {
                results.computeIfPresent(
                        name, (key, text) -> text.equals(MisuseScenarios.OK) ? text : text + line + "\n");
            }
        }
        return results;
    }
}
