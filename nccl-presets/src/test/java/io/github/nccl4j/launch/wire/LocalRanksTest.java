package io.github.nccl4j.launch.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.env.RankValues;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Local ranks by the entries of ranks on several hosts. */
class LocalRanksTest {
    private static byte[] entry(String host, int localRank) {
        return new Wire.Frame()
                .text(host + " id")
                .text(host)
                .text("torchrun")
                .number32(localRank)
                .number32(RankValues.UNKNOWN)
                .toBytes();
    }

    /** It is less than the number of all ranks, which {@code RankInfo} checks. */
    @Test
    void localRankMustBeLessThanTheRanksOfItsHost() {
        List<byte[]> entries = List.of(entry("a", 0), entry("a", 2), entry("b", RankValues.UNKNOWN));
        for (int rank = 0; rank < entries.size(); rank++) {
            int self = rank;
            RendezvousException failure =
                    assertThrows(RendezvousException.class, () -> LocalRanks.locate(self, entries));
            assertEquals(
                    "the local rank of rank 1 must be < 2: torchrun set 2; host a has ranks 0, 1",
                    failure.getMessage());
        }
    }

    @Test
    void otherRanksGetTheFreeNumbersOfTheirHost() {
        int unknown = RankValues.UNKNOWN;
        List<byte[]> entries = List.of(
                entry("a", unknown),
                entry("b", 0),
                entry("a", 0),
                entry("a", 1),
                entry("b", unknown),
                entry("a", unknown));
        List<LocalRanks.Location> expected = List.of(
                new LocalRanks.Location(2, 4),
                new LocalRanks.Location(0, 2),
                new LocalRanks.Location(0, 4),
                new LocalRanks.Location(1, 4),
                new LocalRanks.Location(1, 2),
                new LocalRanks.Location(3, 4));
        for (int rank = 0; rank < entries.size(); rank++) {
            assertEquals(expected.get(rank), LocalRanks.locate(rank, entries));
        }
    }
}
