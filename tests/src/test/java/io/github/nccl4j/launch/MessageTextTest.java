package io.github.nccl4j.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.RankInfo.Source;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests of {@link MessageText}, and of {@link RankInfo#isSameRankAs}. */
class MessageTextTest {
    private static final int UNKNOWN = RankInfo.UNKNOWN;

    @Test
    void listsUpToSixteenRanks() {
        assertEquals("rank 3", MessageText.ranks(List.of(3)));
        assertEquals("ranks 3, 5", MessageText.ranks(List.of(3, 5)));
        List<Integer> many = IntStream.range(0, 18).boxed().toList();
        String sixteen = "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15";
        assertEquals(sixteen, MessageText.ranks(many.subList(0, 16)));
        assertEquals(sixteen + ", and 1 more", MessageText.ranks(many.subList(0, 17)));
        assertEquals(sixteen + ", and 2 more", MessageText.ranks(many));
    }

    @Test
    void formatsTimesInSeconds() {
        assertEquals("0 s", MessageText.seconds(999_999));
        assertEquals("0.001 s", MessageText.seconds(1_000_000));
        assertEquals("1.5 s", MessageText.seconds(1_500_000_000));
        assertEquals("60 s", MessageText.seconds(60_000_000_000L));
    }

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
