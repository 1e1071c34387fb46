package io.github.nccl4j.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo.Source;
import org.junit.jupiter.api.Test;

/** Tests of {@link RankInfo#isSameRankAs}. */
class SameRankTest {
    private static final int UNKNOWN = RankInfo.UNKNOWN;

    private static RankInfo rank(int rank, int localRank, int localWorldSize) {
        return new RankInfo(rank, 8, localRank, localWorldSize, "node0", 29500, "job", 0, Source.TORCHRUN);
    }

    @Test
    void isSameRankIgnoresUnknownLocalValues() {
        assertEquals(rank(5, 1, 4), rank(5, UNKNOWN, UNKNOWN).withLocalRank(1, 4));
        assertTrue(rank(5, 1, 4).isSameRankAs(rank(5, 1, 4)));
        assertTrue(rank(5, 1, 4).isSameRankAs(rank(5, UNKNOWN, UNKNOWN)));
        assertTrue(rank(5, UNKNOWN, 4).isSameRankAs(rank(5, 1, 4)));
        assertFalse(rank(5, 1, 4).isSameRankAs(rank(5, 2, 4)));
        assertFalse(rank(5, 1, 4).isSameRankAs(rank(5, 1, 3)));
        assertFalse(rank(5, 1, 4).isSameRankAs(rank(6, 1, 4)));
        assertFalse(rank(5, UNKNOWN, UNKNOWN).isSameRankAs(rank(6, 1, 4)));
    }
}
