package io.github.nccl4j.extensions;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.extensions.ExpertParallel.Overflow;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Bfloat16;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Every expert gets its tokens in order, and every token the weighted sum, as an oracle in plain Java says. */
class ExpertParallelTest {
    private static final int HIDDEN = 3;

    /** The routing of all ranks. Element h of token t of rank r is 100 r + 10 t + h. */
    private record Routing(int experts, int[][][] chosen, float[][][] weights) {
        static Routing random(int ranks, int experts, int mostTokens, int top, long seed) {
            Random random = new Random(seed);
            int[][][] chosen = new int[ranks][][];
            float[][][] weights = new float[ranks][][];
            for (int rank = 0; rank < ranks; rank++) {
                int tokens = random.nextInt(mostTokens + 1);
                chosen[rank] = new int[tokens][];
                weights[rank] = new float[tokens][];
                for (int token = 0; token < tokens; token++) {
                    // Uneven: small numbers are more frequent, and some experts get no token.
                    chosen[rank][token] = random.doubles()
                            .mapToInt(x -> (int) (x * x * experts))
                            .distinct()
                            .limit(Math.min(random.nextInt(top + 1), experts))
                            .toArray();
                    weights[rank][token] = new float[chosen[rank][token].length];
                    for (int i = 0; i < weights[rank][token].length; i++) {
                        weights[rank][token][i] = random.nextFloat();
                    }
                }
            }
            return new Routing(experts, chosen, weights);
        }

        static float element(int rank, int token, int h) {
            return 100 * rank + 10 * token + h;
        }

        /** The rank and the token of each row of an expert, within its capacity. */
        List<int[]> rowsOf(int expert, long capacity) {
            List<int[]> rows = new ArrayList<>();
            for (int rank = 0; rank < chosen.length; rank++) {
                for (int token = 0; token < chosen[rank].length; token++) {
                    for (int each : chosen[rank][token]) {
                        if (each == expert && rows.size() < capacity) {
                            rows.add(new int[] {rank, token});
                        }
                    }
                }
            }
            return rows;
        }

        /** Expert e gives 2 x + e. */
        float[] combined(int rank, long capacity) {
            float[] sums = new float[chosen[rank].length * HIDDEN];
            for (int token = 0; token < chosen[rank].length; token++) {
                for (int i = 0; i < chosen[rank][token].length; i++) {
                    int expert = chosen[rank][token][i];
                    int number = token;
                    if (rowsOf(expert, capacity).stream().anyMatch(row -> row[0] == rank && row[1] == number)) {
                        for (int h = 0; h < HIDDEN; h++) {
                            sums[token * HIDDEN + h] +=
                                    weights[rank][token][i] * (2 * element(rank, token, h) + expert);
                        }
                    }
                }
            }
            return sums;
        }
    }

    private static void check(Communicator communicator, CudaStream stream, Routing routing, long capacity) {
        int rank = communicator.rank();
        int tokens = routing.chosen[rank].length;
        ExpertParallel<Float32> experts =
                ExpertParallel.create(communicator, ElementType.FLOAT32, routing.experts, HIDDEN);
        if (capacity < Long.MAX_VALUE) {
            experts = experts.withCapacity(capacity, Overflow.DROP);
        }
        // One row more than needed: buffers of no element are not what this tests.
        try (DeviceBuffer<Float32> memory =
                        communicator.device().allocate(ElementType.FLOAT32, (tokens + 1L) * HIDDEN);
                DeviceBuffer<Float32> output =
                        communicator.device().allocate(ElementType.FLOAT32, (tokens + 1L) * HIDDEN)) {
            float[] values = new float[tokens * HIDDEN];
            for (int i = 0; i < values.length; i++) {
                values[i] = Routing.element(rank, i / HIDDEN, i % HIDDEN);
            }
            memory.copyFrom(values);
            DeviceBuffer<Float32> input = memory.slice(0, values.length);
            DeviceBuffer<Float32> combined = output.slice(0, values.length);
            try (ExpertParallel.Dispatch<Float32> dispatch =
                    experts.dispatch(input, routing.chosen[rank], routing.weights[rank], stream)) {
                assertTrue(stream.isDone(), "a dispatch waits for the tokens");
                runExperts(rank, dispatch, experts.localExperts(), routing, capacity);
                dispatch.combine(combined, stream);
                float[] found = new float[values.length];
                combined.copyTo(found);
                assertArrayEquals(routing.combined(rank, capacity), found, "rank " + rank);
                long lost = Arrays.stream(routing.chosen[rank])
                        .mapToLong(one -> one.length)
                        .sum();
                for (int expert = 0; expert < routing.experts; expert++) {
                    lost -= routing.rowsOf(expert, capacity).stream()
                            .filter(row -> row[0] == rank)
                            .count();
                }
                assertEquals(lost, dispatch.dropped());
            }
        }
    }

    private static void runExperts(
            int rank, ExpertParallel.Dispatch<Float32> dispatch, int local, Routing routing, long capacity) {
        int row = 0;
        for (int i = 0; i < local; i++) {
            int expert = rank * local + i;
            List<int[]> rows = routing.rowsOf(expert, capacity);
            assertEquals(rows.size(), dispatch.counts()[i], "expert " + expert);
            for (int[] one : rows) {
                DeviceBuffer<Float32> token = dispatch.tokens().orElseThrow().slice((long) row++ * HIDDEN, HIDDEN);
                float[] values = new float[HIDDEN];
                token.copyTo(values);
                for (int h = 0; h < HIDDEN; h++) {
                    assertEquals(Routing.element(one[0], one[1], h), values[h]);
                    values[h] = 2 * values[h] + expert;
                }
                token.copyFrom(values);
            }
        }
        assertEquals(row == 0, dispatch.tokens().isEmpty());
    }

    @ParameterizedTest
    @CsvSource({"1, 1, 1", "1, 4, 2", "2, 2, 2", "2, 8, 2", "3, 6, 1", "4, 4, 2", "4, 16, 2"})
    void tokensGoToTheirExpertsAndBack(int ranks, int experts, int top) throws Exception {
        List<Routing> routings = new ArrayList<>();
        for (int seed = 0; seed < 20; seed++) {
            routings.add(Routing.random(ranks, experts, 8, top, seed));
        }
        Ranks.run(ranks, (communicator, stream) -> {
            for (Routing routing : routings) {
                check(communicator, stream, routing, Long.MAX_VALUE);
                check(communicator, stream, routing, 3);
                check(communicator, stream, routing, 0);
            }
        });
    }

    @Test
    void tooManyTokensFailOnAllRanks() throws Exception {
        List<Integer> failed = new ArrayList<>();
        Ranks.run(3, (communicator, stream) -> {
            ExpertParallel<Float32> experts = ExpertParallel.create(communicator, ElementType.FLOAT32, 3, 1)
                    .withCapacity(2, Overflow.FAIL);
            try (DeviceBuffer<Float32> token = communicator.device().allocate(ElementType.FLOAT32, 1)) {
                IllegalStateException e = assertThrows(
                        IllegalStateException.class,
                        () -> experts.dispatch(token, new int[][] {{1}}, new float[][] {{1}}, stream));
                assertTrue(e.getMessage().contains("expert 1 got 3, its capacity is 2"), e.getMessage());
                synchronized (failed) {
                    failed.add(communicator.rank());
                }
            }
        });
        assertEquals(3, failed.size());
    }

    @Test
    void smallFloatsAreSummedAsFloats() throws Exception {
        Ranks.run(2, (communicator, stream) -> {
            ExpertParallel<Bfloat16> experts = ExpertParallel.create(communicator, ElementType.BFLOAT16, 2, 1);
            try (DeviceBuffer<Bfloat16> token = communicator.device().allocate(ElementType.BFLOAT16, 1)) {
                token.copyFrom(new float[] {3});
                try (ExpertParallel.Dispatch<Bfloat16> dispatch =
                        experts.dispatch(token, new int[][] {{0, 1}}, new float[][] {{0.5f, 0.25f}}, stream)) {
                    assertArrayEquals(new int[] {2}, dispatch.counts());
                    dispatch.combine(token, stream);
                }
                float[] sum = new float[1];
                token.copyTo(sum);
                assertEquals(2.25f, sum[0]);
            }
        });
    }

    @Test
    void wrongArgumentsAreRefused() throws Exception {
        Ranks.run(1, (communicator, stream) -> {
            ExpertParallel<Float32> experts = ExpertParallel.create(communicator, ElementType.FLOAT32, 2, 2);
            try (DeviceBuffer<Float32> token = communicator.device().allocate(ElementType.FLOAT32, 2)) {
                float[][] one = {{1}};
                assertThrows(
                        IndexOutOfBoundsException.class, () -> experts.dispatch(token, new int[][] {{2}}, one, stream));
                assertThrows(
                        IllegalArgumentException.class,
                        () -> experts.dispatch(token, new int[][] {{0, 1}}, one, stream));
                assertThrows(
                        IllegalArgumentException.class,
                        () -> experts.dispatch(token, new int[][] {{0}, {1}}, one, stream));
            }
            assertThrows(
                    IllegalArgumentException.class,
                    () -> ExpertParallel.create(communicator, ElementType.FLOAT64, 1, 1));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> ExpertParallel.create(communicator, ElementType.FLOAT32, 0, 1));
            assertThrows(IllegalArgumentException.class, () -> experts.withCapacity(-1, Overflow.DROP));
        });
    }
}
