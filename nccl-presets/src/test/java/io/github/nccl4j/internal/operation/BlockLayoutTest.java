package io.github.nccl4j.internal.operation;

import static io.github.nccl4j.testing.Expect.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

/** Blocks of a buffer by counts and displacements: bounds, and overlap of blocks that are written. */
class BlockLayoutTest {
    private static final long LENGTH = 10;

    private static BlockLayout written(long[] counts, long[] displacements) {
        return BlockLayout.checked("recv", counts, displacements, counts.length, LENGTH, true);
    }

    @Test
    void blocksMayTouchInAnyOrder() {
        BlockLayout blocks = written(new long[] {4, 3, 3}, new long[] {6, 3, 0});
        assertArrayEquals(new long[] {4, 3, 3}, blocks.counts());
        assertArrayEquals(new long[] {6, 3, 0}, blocks.displacements());
    }

    /** Row by row, as callers of VCCL hold the tables of all ranks. */
    @Test
    void ofMatricesTheRowOfTheRankCounts() {
        long[] counts = {1, 2, 3, 4};
        BlockLayout second = BlockLayout.ofRank("send", counts, new long[] {9, 9, 0, 3}, 1, 2, LENGTH, false);
        assertArrayEquals(new long[] {3, 4}, second.counts());
        assertArrayEquals(new long[] {0, 3}, second.displacements());
        BlockLayout mixed = BlockLayout.ofRank("send", counts, new long[] {5, 6}, 0, 2, LENGTH, false);
        assertArrayEquals(new long[] {1, 2}, mixed.counts());
        assertArrayEquals(new long[] {5, 6}, mixed.displacements());
        assertEquals(
                "sendCounts must have an element for each rank: 4, size 3",
                refused(() -> BlockLayout.ofRank("send", counts, counts, 0, 3, LENGTH, false)));
    }

    @Test
    void anEmptyBlockMayLieAnywhere() {
        for (long at = 0; at <= LENGTH; at++) {
            long[] displacements = {0, at, 5};
            assertDoesNotThrow(() -> written(new long[] {5, 0, 5}, displacements));
        }
    }

    @Test
    void blocksThatAreWrittenMustNotOverlap() {
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> written(new long[] {4, 0, 3}, new long[] {5, 6, 3}));
        assertEquals(
                "recv blocks must not overlap: that of rank 2 is at 3 with 3 elements, that of rank 0 at 5",
                refused.getMessage());
        assertDoesNotThrow(
                () -> BlockLayout.checked("send", new long[] {4, 0, 3}, new long[] {5, 6, 3}, 3, LENGTH, false));
    }

    @Test
    void theBlockOfRankZeroMustNotBeOverlappedEither() {
        assertEquals(
                "recv blocks must not overlap: that of rank 0 is at 0 with 5 elements, that of rank 1 at 4",
                refused(() -> written(new long[] {5, 5}, new long[] {0, 4})));
    }

    @Test
    void aBlockMustBeWithinTheBuffer() {
        assertDoesNotThrow(() -> written(new long[] {1}, new long[] {9}));
        assertThrows(IndexOutOfBoundsException.class, () -> written(new long[] {1}, new long[] {10}));
        assertThrows(IndexOutOfBoundsException.class, () -> written(new long[] {1}, new long[] {-1}));
        assertThrows(IndexOutOfBoundsException.class, () -> written(new long[] {Long.MAX_VALUE}, new long[] {9}));
        assertThrows(IllegalArgumentException.class, () -> written(new long[] {-1}, new long[] {0}));
    }

    @Test
    void eachRankHasABlock() {
        long[] one = {1};
        long[] two = {1, 1};
        assertEquals(
                "recvCounts must have an element for each rank: 1, size 2",
                refused(() -> BlockLayout.checked("recv", one, two, 2, LENGTH, true)));
        assertEquals(
                "recvDisplacements must have an element for each rank: 1, size 2",
                refused(() -> BlockLayout.checked("recv", two, one, 2, LENGTH, true)));
        assertEquals(
                "counts must have an element for each rank: 1, size 2",
                refused(() -> BlockLayout.consecutive("send", one, 2, 1)));
    }

    @Test
    void consecutiveBlocksFillTheBuffer() {
        BlockLayout blocks = BlockLayout.consecutive("send", new long[] {4, 0, 6}, 3, LENGTH);
        assertArrayEquals(new long[] {4, 0, 6}, blocks.counts());
        assertArrayEquals(new long[] {0, 4, 4}, blocks.displacements());
        assertEquals(
                "send.length() must be the sum of the counts: 10 != 9",
                refused(() -> BlockLayout.consecutive("send", new long[] {4, 0, 5}, 3, LENGTH)));
        assertEquals(
                "counts[1] must be >= 0: -1",
                refused(() -> BlockLayout.consecutive("send", new long[] {5, -1, 6}, 3, LENGTH)));
    }
}
