package io.github.nccl4j.internal.operation;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.testing.TestLog;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is refused in symmetric windows and what is told of registered memory, by release. */
class RegistrationFaultsTest {
    private static final Version OLD = new Version(2, 28, 3);
    private static final Version NEWER = new Version(2, 28, 9);
    private static final int PLACE = 0x1000;

    private static String problem(Version version, OperationKind operation, long send, long count, int size) {
        return RegistrationFaults.wrongResult(version, operation, send, count, size);
    }

    @Test
    void faultsOfSingleCallsBeginAndEndWithARelease() {
        assertFalse(RegistrationFaults.affect(Engine.NCCL, new Version(2, 26, 5)));
        assertTrue(RegistrationFaults.affect(Engine.NCCL, new Version(2, 27, 3)));
        assertTrue(RegistrationFaults.affect(Engine.NCCL, new Version(2, 30, 2)));
        assertFalse(RegistrationFaults.affect(Engine.NCCL, new Version(2, 30, 3)));
    }

    @Test
    void smallElementsAreReadAtMultiplesOfFourBytesOnly() {
        for (OperationKind operation :
                new OperationKind[] {OperationKind.ALL_REDUCE, OperationKind.ALL_GATHER, OperationKind.REDUCE_SCATTER
                }) {
            assertNull(problem(NEWER, operation, PLACE, 8, 1));
            assertNull(problem(NEWER, operation, PLACE + 4, 8, 2));
            assertEquals(
                    "in symmetric windows, the send buffer must begin at a multiple of 4 bytes, not at 0x1002:"
                            + " NCCL 2.28.9 returns wrong elements, 2.30.3 does not",
                    problem(NEWER, operation, PLACE + 2, 8, 2));
            assertNotNull(problem(NEWER, operation, PLACE + 1, 8, 1));
            assertNull(problem(NEWER, operation, PLACE + 4, 8, 8));
            assertNull(problem(NEWER, operation, PLACE + 2, 8, 4), "elements of a word are not small");
        }
        assertNull(problem(NEWER, OperationKind.BROADCAST, PLACE + 1, 7, 1));
        assertNull(problem(NEWER, OperationKind.SEND, PLACE + 1, 7, 1));
    }

    @Test
    void blocksThatRanksReadBeginThereToo() {
        assertNull(problem(NEWER, OperationKind.ALL_GATHER, PLACE, 7, 2));
        assertNull(problem(NEWER, OperationKind.ALL_REDUCE, PLACE, 7, 2));
        assertEquals(
                "in symmetric windows, the block of a rank must have a multiple of 4 bytes, not 14 (7 elements):"
                        + " NCCL 2.28.9 returns wrong elements, 2.30.3 does not",
                problem(NEWER, OperationKind.REDUCE_SCATTER, PLACE, 7, 2));
    }

    @Test
    void blocksHaveMultiplesOfEightBytesBeforeRelease2287() {
        assertEquals(
                "in symmetric windows, the block of a rank must have a multiple of 8 bytes, not 4100 (1025 elements):"
                        + " NCCL 2.28.3 returns wrong elements, 2.28.7 does not",
                problem(OLD, OperationKind.ALL_GATHER, PLACE, 1025, 4));
        assertNotNull(problem(OLD, OperationKind.REDUCE_SCATTER, PLACE, 1025, 4));
        assertNull(problem(OLD, OperationKind.ALL_GATHER, PLACE, 1026, 4));
        assertNull(problem(OLD, OperationKind.REDUCE_SCATTER, PLACE, 1026, 4));
        assertNull(problem(OLD, OperationKind.ALL_REDUCE, PLACE, 1025, 4));
        assertNull(problem(NEWER, OperationKind.ALL_GATHER, PLACE, 1025, 4));
    }

    @Test
    void noKernelAllReducesAveragesOfSmallFloats() {
        Version before = new Version(2, 29, 7);
        Version newest = new Version(2, 30, 7);
        assertEquals(
                "in symmetric windows, all-reduce has no AVG of float32: NCCL 2.30.7 has no kernel for it; use memory outside of"
                        + " windows, or SUM and a scale",
                RegistrationFaults.missingAverage(newest, DataType.FLOAT32));
        for (ElementType<?> type : ElementType.values()) {
            boolean lacks = type.isFloat() && type != ElementType.FLOAT64;
            assertEquals(lacks, RegistrationFaults.missingAverage(newest, type.dataType()) != null, type.toString());
            assertEquals(
                    lacks,
                    RegistrationFaults.missingAverage(new Version(2, 30, 3), type.dataType()) != null,
                    type.toString());
            assertNull(RegistrationFaults.missingAverage(before, type.dataType()));
        }
    }

    @Test
    void theseKernelsNeedBothWindowsBeforeRelease2292AndOneLater() {
        assertTrue(RegistrationFaults.usesKernels(NEWER, true, true));
        assertFalse(RegistrationFaults.usesKernels(NEWER, true, false));
        assertFalse(RegistrationFaults.usesKernels(NEWER, false, true));
        Version later = new Version(2, 29, 2);
        assertTrue(RegistrationFaults.usesKernels(later, true, false));
        assertTrue(RegistrationFaults.usesKernels(later, false, true));
        assertFalse(RegistrationFaults.usesKernels(later, false, false));
    }

    @Test
    void warnsOfFaultsOfSeveralCalls() {
        assertNull(RegistrationFaults.warning(Engine.NCCL, new Version(2, 22, 3)));
        String both = RegistrationFaults.warning(Engine.NCCL, OLD);
        assertTrue(both.startsWith("NCCL 2.28.3 makes GPUs read from a null address in a large collective"), both);
        assertTrue(both.contains("NCCL_LOCAL_REGISTER=0") && both.endsWith("2.28.7 does not"), both);
        String one = RegistrationFaults.warning(Engine.NCCL, NEWER);
        assertTrue(one.endsWith("or use NCCL 2.29.2"), one);
        assertEquals(one.replace("2.28.9", "2.26.2"), RegistrationFaults.warning(Engine.NCCL, new Version(2, 26, 2)));
        assertNull(RegistrationFaults.warning(Engine.NCCL, new Version(2, 29, 2)));
    }

    @Test
    void theHostEngineHasNone() {
        assertFalse(RegistrationFaults.affect(NcclLibrary.get()));
        assertFalse(RegistrationFaults.affect(Engine.HOST, OLD));
        assertNull(RegistrationFaults.warning(Engine.HOST, OLD));
    }

    @Test
    void warnsOnceInAProcess() {
        try (TestLog log = new TestLog()) {
            RegistrationFaults.warnOnce(NcclLibrary.get());
            assertEquals(List.of(), log.lines());
            RegistrationFaults.warnOnce("first");
            RegistrationFaults.warnOnce("second");
            assertEquals(List.of("WARNING: first"), log.lines());
        }
    }
}
