package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RankDevicesTest {
    @ParameterizedTest
    @CsvSource({"0, 2, 2, false", "2, 2, 4, false", "0, 2, 2, true", "0, 1, 8, true"})
    void eachRankHasAGpuOfItsOwn(int first, int count, int gpus, boolean shared) {
        int[] indices = RankDevices.indices(first, count, gpus, shared);

        assertEquals(count, indices.length);
        for (int i = 0; i < count; i++) {
            assertEquals(first + i, indices[i]);
        }
    }

    @ParameterizedTest
    @CsvSource({"0, 2, 1, false", "1, 1, 1, false", "0, 1, 0, false", "0, 1, 0, true", "0, 2, 1, true", "0, 5, 3, true"
    })
    void tooFewAreRefused(int first, int count, int gpus, boolean shared) {
        String message = assertThrows(
                        IllegalStateException.class, () -> RankDevices.indices(first, count, gpus, shared))
                .getMessage();

        assertEquals(
                "this process needs GPUs " + first + " to " + (first + count - 1) + ", and CUDA shows " + gpus
                        + "; processes share GPUs with NCCL 2.30.3 or newer and NCCL_MULTI_RANK_GPU_ENABLE=1",
                message);
    }

    @Test
    void processesTakeSharedGpusInTurn() {
        assertArrayEquals(new int[] {0, 1}, RankDevices.indices(2, 2, 2, true));
        assertArrayEquals(new int[] {2, 0, 1}, RankDevices.indices(5, 3, 3, true));
        assertArrayEquals(new int[] {0}, RankDevices.indices(7, 1, 1, true));
    }
}
