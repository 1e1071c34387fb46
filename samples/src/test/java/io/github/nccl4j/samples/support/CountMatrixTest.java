package io.github.nccl4j.samples.support;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class CountMatrixTest {

    @Test
    void blocksFillTheBuffersWithoutGaps() {
        try (CountMatrix matrix = new CountMatrix(3, (from, to) -> from == to ? 0 : 10L * from + to)) {
            assertEquals(21, matrix.sent(2, 1));
            assertEquals(0, matrix.sendDisplacement(2, 0));
            assertEquals(20, matrix.sendDisplacement(2, 1));
            assertEquals(0, matrix.receiveDisplacement(1, 2));
            assertEquals(21, matrix.receiveDisplacement(1, 1));
            assertEquals(21, matrix.receiveDisplacement(1, 0));
            assertEquals(41, matrix.largestBuffer());
        }
    }
}
