package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.UniqueId;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Unique ids, on the host engine. */
class UniqueIdTest {
    @Test
    void anIdTravelsAsBytes() {
        UniqueId id = UniqueId.create();
        UniqueId copy = UniqueId.of(id.toBytes());
        assertEquals(id, copy);
        assertEquals(id.hashCode(), copy.hashCode());
        assertEquals(id.toString(), copy.toString());
        assertEquals(UniqueId.BYTES, id.toBytes().length);
        assertFalse(Arrays.equals(new byte[UniqueId.BYTES], id.toBytes()));
    }

    @Test
    void idsDiffer() {
        UniqueId one = UniqueId.create();
        UniqueId other = UniqueId.create();
        assertNotEquals(one, other);
        assertNotEquals(one.toString(), other.toString());
        // 128 random bytes: equal hash codes have a probability of 2^-32.
        assertNotEquals(one.hashCode(), other.hashCode());
    }

    @Test
    void idIsImmutable() {
        byte[] bytes = new byte[UniqueId.BYTES];
        UniqueId id = UniqueId.of(bytes);
        Arrays.fill(bytes, (byte) 1);
        assertArrayEquals(new byte[UniqueId.BYTES], id.toBytes());
        id.toBytes()[0] = 1;
        assertArrayEquals(new byte[UniqueId.BYTES], id.toBytes());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 127, 129, 256})
    void anotherLengthIsRefusedWithBothLengths(int length) {
        String message = assertThrows(IllegalArgumentException.class, () -> UniqueId.of(new byte[length]))
                .getMessage();
        assertEquals("a unique id has 128 bytes, not " + length, message);
    }

    @Test
    void noBytesAreRefused() {
        assertThrows(NullPointerException.class, () -> UniqueId.of(null));
    }

    @Test
    void theTextShowsNoBytes() {
        byte[] bytes =
                "a secret that opens a communicator".repeat(4).substring(0, 128).getBytes(StandardCharsets.US_ASCII);
        String text = UniqueId.of(bytes).toString();
        assertTrue(text.matches("UniqueId\\[[0-9a-f]{8}]"), text);
        String hex = HexFormat.of().formatHex(bytes);
        assertEquals(-1, hex.indexOf(text.substring(9, 17)));
    }
}
