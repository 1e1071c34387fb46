package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.config.FaultyAlgorithm;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FaultyAlgorithmTest {
    @Test
    void areExcludedFromTheReleaseThatChoosesThem() {
        assertFalse(FaultyAlgorithm.mustBeExcluded(new Version(2, 30, 7)));
        assertFalse(FaultyAlgorithm.mustBeExcluded(new Version(2, 31, 1)));
        assertTrue(FaultyAlgorithm.mustBeExcluded(new Version(2, 31, 2)));
        assertTrue(FaultyAlgorithm.mustBeExcluded(new Version(2, 32, 3)));
    }

    @Test
    void aCallWithoutConfigurationGetsOneConfigurationForAllCalls() {
        CollectiveConfig noPat = CollectiveConfig.EMPTY.excluding(FaultyAlgorithm.PAT);
        assertEquals(CollectiveConfig.algorithm("^pat"), noPat);
        assertSame(noPat, CollectiveConfig.EMPTY.excluding(FaultyAlgorithm.PAT));
        assertEquals(CollectiveConfig.algorithm("^symk"), CollectiveConfig.EMPTY.excluding(FaultyAlgorithm.SYMMETRIC));
        assertSame(
                noPat, CollectiveConfig.EMPTY.excluding(FaultyAlgorithm.PAT), "not replaced by the other algorithm's");
    }

    @Test
    void otherFieldsStay() {
        CollectiveConfig given =
                CollectiveConfig.builder().maxCtas(4).profilerTag(7).build();
        assertEquals(given.toBuilder().algorithm("^pat").build(), given.excluding(FaultyAlgorithm.PAT));
        assertEquals(Map.of("maxCTAs", 4, "userProfilerTag", 7L), given.values(), "the given one is unchanged");
    }

    @ParameterizedTest
    @CsvSource({"ring, ring+^pat", "'ring,pat', 'ring+^pat,pat+^pat'", "^ring, ^ring+^pat"})
    void aForcedSelectionIsRestricted(String given, String expected) {
        CollectiveConfig config = CollectiveConfig.algorithm(given).excluding(FaultyAlgorithm.PAT);
        assertEquals(expected, config.values().get("algSelection").toString());
        assertFalse(config.values().containsKey("forceAlgSelection"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"tree", "ring", "pat"})
    void aPreferenceCouldFallBackToTheAlgorithmAndIsReplaced(String preferred) {
        CollectiveConfig given =
                CollectiveConfig.builder().preferAlgorithm(preferred).build();
        assertEquals(CollectiveConfig.algorithm("^pat"), given.excluding(FaultyAlgorithm.PAT));
    }

    @ParameterizedTest
    @ValueSource(strings = {"pat", "pat_simple", "pat,pat_simple", "pat+^ring"})
    void forcingTheAlgorithmIsRefused(String selection) {
        CollectiveConfig given = CollectiveConfig.algorithm(selection);
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> given.excluding(FaultyAlgorithm.PAT));
        assertEquals(
                "algorithm must not force pat for reduce-scatter with AVG or PreMulSum, NCCL returns the unscaled sum"
                        + " then: '" + selection + "'",
                refused.getMessage());
        assertEquals(
                selection,
                given.excluding(FaultyAlgorithm.SYMMETRIC)
                        .values()
                        .get("algSelection")
                        .toString()
                        .replace("+^symk", ""));
    }

    @Test
    void forcingTheKernelsForWindowsIsRefused() {
        CollectiveConfig given = CollectiveConfig.algorithm("symk");
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> given.excluding(FaultyAlgorithm.SYMMETRIC));
        assertEquals(
                "algorithm must not force symk for all-reduce with AVG of this type, NCCL has no kernel for it then:"
                        + " 'symk'",
                refused.getMessage());
    }

    @Test
    void theHostEngineHasNoFaultyAlgorithm() {
        NcclLibrary host = NcclLibrary.get();
        assertTrue(FaultyAlgorithm.mustBeExcluded(host.version()), host::toString);
        assertFalse(FaultyAlgorithm.mustBeExcluded(host.engine(), host.version()), host::toString);
    }
}
