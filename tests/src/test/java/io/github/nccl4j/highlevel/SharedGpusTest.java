package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class SharedGpusTest {
    private static final Version FIRST = new Version(2, 30, 3);

    @ParameterizedTest
    @ValueSource(strings = {"1", "2", "0x1", " 1 ", "-1"})
    void aNumberOtherThanZeroAllowsThem(String value) {
        assertTrue(SharedGpus.areAllowed(FIRST, value));
        assertTrue(SharedGpus.areAllowed(new Version(2, 32, 3), value));
        assertFalse(SharedGpus.areAllowed(new Version(2, 30, 2), value), "the release does not read the variable");
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"", "0", "00", "0x0", "true", "yes"})
    void everythingElseDoesNot(String value) {
        assertFalse(SharedGpus.areAllowed(FIRST, value));
    }

    @Test
    void theHostEngineHasNoGpus() {
        assertFalse(SharedGpus.areAllowed(NcclLibrary.get()));
    }
}
