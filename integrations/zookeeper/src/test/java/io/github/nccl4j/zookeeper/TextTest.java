package io.github.nccl4j.zookeeper;

import static io.github.nccl4j.testing.Expect.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.Rendezvous;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests of {@link Text}. */
class TextTest {
    @Test
    void namesMustNotBeEmptyOrHaveSlashes() {
        assertEquals("a.b", Text.require("key", "a.b"));
        assertEquals("key must not be empty", refused(() -> Text.require("key", "")));
        assertEquals("key must not contain a slash: a/b", refused(() -> Text.require("key", "a/b")));
    }

    @Test
    void valueHasALimit() {
        byte[] longest = new byte[Rendezvous.LONGEST_VALUE];
        assertSame(longest, Text.requireValue(longest));
        assertEquals(
                "a value must have <= " + longest.length + " bytes: " + (longest.length + 1),
                refused(() -> Text.requireValue(new byte[longest.length + 1])));
    }

    @Test
    void timeoutsAreConverted() {
        assertEquals(0, Text.nanoseconds(Duration.ZERO));
        assertEquals(1_500_000_000, Text.nanoseconds(Duration.ofMillis(1500)));
        assertEquals(Long.MAX_VALUE / 4, Text.nanoseconds(Duration.ofSeconds(Long.MAX_VALUE)));
        assertEquals(Long.MAX_VALUE / 4 - 1, Text.nanoseconds(Duration.ofNanos(Long.MAX_VALUE / 4 - 1)));
        assertEquals("timeout must be >= 0: -1 s", refused(() -> Text.nanoseconds(Duration.ofSeconds(-1))));
        assertEquals(1500, Text.millis(Duration.ofNanos(1_500_999_999)));
        assertEquals(Integer.MAX_VALUE, Text.millis(Duration.ofDays(365)));
    }

    @Test
    void timesAreInSeconds() {
        assertEquals("3 s", Text.seconds(3_000_999_999L));
        assertEquals("0.25 s", Text.seconds(250_000_000));
        assertEquals("12.001 s", Text.seconds(12_001_000_000L));
        assertEquals("20 s", Text.seconds(Duration.ofSeconds(20)));
        assertEquals("0 s", Text.seconds(Duration.ZERO));
        assertEquals("-0.000000001 s", Text.seconds(Duration.ofNanos(-1)));
    }

    @Test
    void ranksAreListed() {
        assertEquals("rank 3", Text.ranks(List.of(3)));
        assertEquals("ranks 3, 5", Text.ranks(List.of(3, 5)));
        List<Integer> many = IntStream.range(0, 18).boxed().toList();
        assertEquals("ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15", Text.ranks(many.subList(0, 16)));
        assertEquals("ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, and 2 more", Text.ranks(many));
    }

    @Test
    void anyTextNamesANode() {
        assertEquals("-a%2Fb+%C3%A9", Text.node("a/b é"));
        assertEquals("-.", Text.node("."));
        assertEquals("-", Text.node(""));
    }

    @Test
    void textsAreUtf8() {
        assertArrayEquals(new byte[] {(byte) 0xc3, (byte) 0xa9}, Text.bytes("é"));
        assertEquals("é", Text.text(Text.bytes("é")));
    }

    @Test
    void processHasHostAndId() {
        assertTrue(
                Text.process().matches(".+, process " + ProcessHandle.current().pid()), Text.process());
    }
}
