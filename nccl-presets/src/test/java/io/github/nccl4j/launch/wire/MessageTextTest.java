package io.github.nccl4j.launch.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests of {@link MessageText}. */
class MessageTextTest {
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
}
