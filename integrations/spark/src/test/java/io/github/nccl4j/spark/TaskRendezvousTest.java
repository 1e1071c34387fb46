package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The texts that tasks exchange, without Spark. */
class TaskRendezvousTest {
    private static String text(String stage, String key, int... value) {
        byte[] bytes = new byte[value.length];
        for (int i = 0; i < value.length; i++) {
            bytes[i] = (byte) value[i];
        }
        return TaskRendezvous.encode(stage, key, bytes);
    }

    private static void assertRefused(String message, String own, String... texts) {
        assertEquals(
                message,
                assertThrows(RendezvousException.class, () -> TaskRendezvous.decode(own, texts))
                        .getMessage());
    }

    private static List<byte[]> libraries(String... names) {
        return Stream.of(names)
                .map(name -> name.getBytes(StandardCharsets.UTF_8))
                .toList();
    }

    @Test
    void valuesHaveAnyBytes() {
        String[] texts = {text("3.0", "a/key", 0, 9, 10, 255), text("3.0", "a/key")};
        List<byte[]> values = TaskRendezvous.decode(texts[1], texts);
        assertArrayEquals(new byte[] {0, 9, 10, -1}, values.get(0));
        assertArrayEquals(new byte[0], values.get(1));
    }

    @Test
    void callsThatDifferAreNamed() {
        assertRefused(
                "all tasks must make the same call: rank 0 is at 'id' of stage 3.0, this rank at 'card' of stage 3.0",
                text("3.0", "card", 1),
                text("3.0", "id", 1),
                text("3.0", "card", 1));
        assertRefused(
                "all tasks must make the same call: rank 1 is at 'id' of stage 3.0, this rank at 'id' of stage 3.1",
                text("3.1", "id"),
                text("3.1", "id"),
                text("3.0", "id"));
        assertRefused(
                "rank 1 sent no value: all executors must have the same release of nccl4j",
                text("3.0", "id"),
                text("3.0", "id"),
                "hello");
    }

    @Test
    void argumentsAreChecked() {
        assertEquals(
                "a key must not be empty",
                assertThrows(IllegalArgumentException.class, () -> text("3.0", ""))
                        .getMessage());
        byte[] longest = new byte[Rendezvous.LONGEST_VALUE];
        TaskRendezvous.encode("3.0", "key", longest);
        assertEquals(
                "a value must have <= 65536 bytes: 65537",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> TaskRendezvous.encode("3.0", "key", new byte[longest.length + 1]))
                        .getMessage());
    }

    @Test
    void librariesThatDifferAreNamed() {
        RankTask.requireOneLibrary(1, libraries("HOST 2.32.3", "HOST 2.32.3"));
        assertEquals(
                "all tasks must load the same NCCL: rank 1 has NCCL 2.28.3, rank 0 has NCCL 2.30.7",
                assertThrows(
                                IllegalStateException.class,
                                () -> RankTask.requireOneLibrary(1, libraries("NCCL 2.30.7", "NCCL 2.28.3")))
                        .getMessage());
    }
}
