package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.config.SharedGpus;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class SharedGpusTest {
    private static final Version FIRST = new Version(2, 30, 3);

    @ParameterizedTest
    @ValueSource(strings = {"1", "2", "0x1", " 1 ", "-1"})
    void aNumberOtherThanZeroAllowsThem(String value) {
        assertTrue(SharedGpus.areAllowed(Engine.NCCL, FIRST, value));
        assertTrue(SharedGpus.areAllowed(Engine.NCCL, new Version(2, 32, 3), value));
        assertFalse(
                SharedGpus.areAllowed(Engine.NCCL, new Version(2, 30, 2), value),
                "the release does not read the variable");
        assertFalse(SharedGpus.areAllowed(Engine.RCCL, FIRST, value), "RCCL does not read it");
        assertFalse(SharedGpus.areAllowed(Engine.HOST, FIRST, value));
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"", "0", "00", "0x0", "true", "yes"})
    void everythingElseDoesNot(String value) {
        assertFalse(SharedGpus.areAllowed(Engine.NCCL, FIRST, value));
    }

    @Test
    void theHostEngineHasNoGpus() {
        assertFalse(NcclLibrary.get().sharesGpus());
    }

    private static void inAJvm(ChildJvm jvm, boolean set, boolean allowed) {
        ChildJvm.Outcome outcome =
                (set ? jvm.environment("NCCL_MULTI_RANK_GPU_ENABLE", "1") : jvm).run(Scenario.class, "" + allowed);
        assertEquals(0, outcome.exitCode(), outcome::output);
    }

    @Test
    void theVariableOfTheProcessCountsWithNcclOnly(@TempDir Path folder) throws IOException {
        Path stub = StubLibraries.small(folder, 23003);
        inAJvm(new ChildJvm().property("nccl4j.library", stub), true, true);
        inAJvm(new ChildJvm().property("nccl4j.library", stub), false, false);
        inAJvm(new ChildJvm().property("nccl4j.engine", "host"), true, false);
    }

    /** In a JVM of its own, with another library or environment. */
    static final class Scenario {
        private Scenario() {}

        public static void main(String[] args) {
            NcclLibrary library = NcclLibrary.get();
            if (library.sharesGpus() != Boolean.parseBoolean(args[0])) {
                throw new AssertionError("not " + args[0] + " with " + library);
            }
        }
    }
}
