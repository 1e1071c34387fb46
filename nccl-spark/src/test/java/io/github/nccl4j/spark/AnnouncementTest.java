package io.github.nccl4j.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.highlevel.UniqueId;
import java.util.Base64;
import org.junit.jupiter.api.Test;

/** What tasks find out about each other before they make a communicator. */
class AnnouncementTest {
    private static final byte[] ID = new byte[UniqueId.BYTES];

    static {
        ID[5] = 7;
    }

    private static Announcement rank(int rank, String stage, String library, String process, String device) {
        return new Announcement(
                stage,
                rank,
                library,
                process,
                device,
                rank == 0 ? Base64.getEncoder().encodeToString(ID) : "");
    }

    private static UniqueId meet(Announcement... all) {
        String[] texts = new String[all.length];
        for (int i = 0; i < all.length; i++) {
            texts[i] = all[i].encode();
        }
        return Announcement.idOf(all[all.length - 1], texts);
    }

    private static void assertRefused(String message, Announcement... all) {
        assertEquals(
                message,
                assertThrows(IllegalStateException.class, () -> meet(all)).getMessage());
    }

    @Test
    void theIdIsThatOfRank0() {
        UniqueId id = meet(
                rank(0, "3.0", "NCCL 2.30.7", "p", "CUDA device 0"),
                rank(1, "3.0", "NCCL 2.30.7", "p", "CUDA device 1"),
                rank(2, "3.0", "NCCL 2.30.7", "q", "CUDA device 0"));
        assertArrayEquals(ID, id.toBytes());
    }

    @Test
    void tasksOfOneProcessShareHostMemory() {
        meet(rank(0, "3.0", "HOST 2.30.7", "p", "host memory"), rank(1, "3.0", "HOST 2.30.7", "p", "host memory"));
    }

    @Test
    void whatDoesNotFitTogetherIsNamed() {
        assertRefused(
                "rank 1 of stage 3.1 met rank 0 of stage 3.0 in place 0",
                rank(0, "3.0", "l", "p", "d"),
                rank(1, "3.1", "l", "p", "e"));
        assertRefused(
                "rank 2 of stage 3.0 met rank 2 of stage 3.0 in place 1",
                rank(0, "3.0", "l", "p", "d"),
                rank(2, "3.0", "l", "p", "e"));
        assertRefused(
                "all tasks must load the same NCCL: rank 1 has NCCL 2.28.3, rank 0 has NCCL 2.30.7",
                rank(0, "3.0", "NCCL 2.30.7", "p", "d"),
                rank(1, "3.0", "NCCL 2.28.3", "q", "e"));
        assertRefused(
                "ranks 0 and 1 are both on CUDA device 0 of one executor: set spark.task.resource.gpu.amount=1",
                rank(0, "3.0", "l", "p", "CUDA device 0"),
                rank(1, "3.0", "l", "p", "CUDA device 0"));
        assertEquals(
                "a task has said 1 words instead of 6: do all executors have the same nccl4j?",
                assertThrows(IllegalStateException.class, () -> Announcement.decode("hello"))
                        .getMessage());
    }
}
