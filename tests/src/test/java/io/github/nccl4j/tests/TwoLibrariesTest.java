package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Two copies of NCCL in a process, under the same names: the one that was chosen answers, and the other is told of. */
class TwoLibrariesTest {
    @TempDir
    static Path folder;

    private static Path ours;
    private static Path other;

    @BeforeAll
    static void makeLibraries() throws IOException {
        ours = StubLibraries.copyOfNccl(folder.resolve("ours"), 22809);
        other = StubLibraries.copyOfNccl(folder.resolve("pytorch"), 22705);
    }

    private static String run(ChildJvm jvm, String... args) {
        ChildJvm.Outcome outcome = jvm.run(TwoLibraries.class, args);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output();
    }

    private static void assertChosen(String output, Path library, int version, String others) {
        assertTrue(output.contains("from " + library + "\n"), output);
        assertTrue(output.contains("\nothers " + others + "\n"), output);
        assertTrue(output.contains("\nversions " + version + " " + version + "\n"), output);
    }

    private static void assertWarns(String output) {
        assertTrue(
                output.contains("NCCL 2.28.9 from " + ours + " is used, and this process also has " + other), output);
    }

    @ParameterizedTest
    @CsvSource({"before, local", "before, global", "after, local", "after, global"})
    void theChosenOneAnswers(String order, String scope) {
        String output = run(new ChildJvm().property("nccl4j.library", ours), order, scope, other.toString());
        assertChosen(output, ours, 22809, "[" + other + "]");
        if (order.equals("before")) {
            assertWarns(output);
        }
    }

    @Test
    void aPreloadedOneDoesNotTakeItsCalls() {
        ChildJvm jvm = new ChildJvm().property("nccl4j.library", ours).environment("LD_PRELOAD", other.toString());
        String output = run(jvm, "without", "any", "");
        assertChosen(output, ours, 22809, "[" + other + "]");
        assertWarns(output);
    }

    /** The dynamic linker knows no second library of a name: the process has one copy, and the message says which. */
    @Test
    void byItsNameTheOneThatIsThereIsTaken() {
        ChildJvm jvm = new ChildJvm()
                .property("nccl4j.engine", "nccl")
                .environment("LD_LIBRARY_PATH", ours.getParent().toString());
        assertChosen(run(jvm, "before", "local", other.toString()), other, 22705, "[]");
    }
}
