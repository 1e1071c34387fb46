package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tools.support.Programs;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/**
 * The tests of the host engine's parts in C++, nccl-host/src/test/cpp, compiled as the engine is. The gate runs them longer
 * and with sanitizers.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class NativeSuiteTest {
    private final Path programs = Path.of("target/native-suite").toAbsolutePath();

    @BeforeAll
    void build() throws IOException {
        Programs.requireFile(Path.of("/usr/include/gtest/gtest.h"), "libgtest-dev");
        Cxx.output(List.of(
                "../nccl-host/test-native.sh", System.getProperty("nccl4j.test.cxx", "g++"), programs.toString()));
    }

    @Test
    void theUnitTestsPass() throws IOException {
        String output =
                NativeTestProgram.output(List.of(programs.resolve("unit-tests").toString()), Duration.ofMinutes(5));
        assertTrue(output.contains("[  PASSED  ]"), output);
    }

    @Test
    void randomWorkOfThreadsSucceeds() throws IOException {
        String output = run("stress", "2");
        assertTrue(output.contains(" rounds"), output);
    }

    @Test
    void bytesThatNoRankSendsEndNothingButTheOperation() throws IOException {
        String output = run("fuzz-wire", "30", "1000");
        assertTrue(output.contains(" messages"), output);
    }

    private String run(String program, String... arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(programs.resolve(program).toString());
        command.addAll(List.of(arguments));
        return Cxx.output(command);
    }
}
