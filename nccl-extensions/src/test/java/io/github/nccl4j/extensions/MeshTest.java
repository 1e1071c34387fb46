package io.github.nccl4j.extensions;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Ranks and coordinates of a mesh, its communicators, and the parts of layouts. */
class MeshTest {
    private final Mesh mesh = Mesh.of("data", 2).by("model", 3).startingAt(1);

    @Test
    void coordinatesAndRanksBelongTogether() {
        assertEquals(6, mesh.size());
        assertEquals(List.of("data", "model"), mesh.names());
        assertArrayEquals(new int[] {0, 0}, mesh.coordinates(1));
        assertArrayEquals(new int[] {1, 2}, mesh.coordinates(6));
        for (int rank = 1; rank <= 6; rank++) {
            assertEquals(rank, mesh.rank(mesh.coordinates(rank)));
        }
        assertFalse(mesh.contains(0));
        assertFalse(mesh.contains(7));
        assertEquals("mesh data 2 x model 3 of ranks 1 to 6", mesh.toString());
        assertEquals(mesh, Mesh.of("data", 2).by("model", 3).startingAt(1));
    }

    @Test
    void wrongArgumentsAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> mesh.coordinates(0));
        assertThrows(IllegalArgumentException.class, () -> mesh.rank(1));
        assertThrows(IndexOutOfBoundsException.class, () -> mesh.rank(1, 3));
        assertThrows(IllegalArgumentException.class, () -> mesh.by("data", 2));
        assertThrows(IllegalArgumentException.class, () -> Mesh.of("x", 0));
        assertThrows(IllegalArgumentException.class, () -> mesh.startingAt(-1));
        assertThrows(IllegalArgumentException.class, () -> Mesh.of("x", 1 << 20).by("y", 1 << 20));
        assertThrows(IllegalArgumentException.class, () -> mesh.dimension("expert"));
        assertThrows(IllegalArgumentException.class, () -> Placement.shard(-1));
        List<Placement> one = List.of(Placement.shard(0));
        assertThrows(IllegalArgumentException.class, () -> TensorLayout.of(mesh, one, 4));
        List<Placement> two = List.of(Placement.replicate(), Placement.shard(1));
        assertThrows(IllegalArgumentException.class, () -> TensorLayout.of(mesh, two, 4));
        assertThrows(IllegalArgumentException.class, () -> TensorLayout.of(mesh, two, 4, -1));
        assertThrows(ArithmeticException.class, () -> TensorLayout.of(mesh, two, Long.MAX_VALUE, 2));
    }

    @Test
    void lastRanksHaveLess() {
        TensorLayout layout = TensorLayout.of(mesh, List.of(Placement.replicate(), Placement.shard(1)), 2, 7);
        assertArrayEquals(new long[] {2, 3}, layout.shape(4));
        assertArrayEquals(new long[] {2, 1}, layout.shape(6));
        assertArrayEquals(new long[] {0, 6}, layout.offset(6));
        assertEquals(0, layout.elements(0));
    }

    @Test
    void communicatorsOfADimensionHaveItsRanksInOrder() throws Exception {
        Ranks.run(7, (communicator, stream) -> {
            for (int dimension = 0; dimension < 2; dimension++) {
                Optional<Communicator> line =
                        mesh.split(communicator, mesh.names().get(dimension));
                assertEquals(communicator.rank() > 0, line.isPresent());
                if (line.isPresent()) {
                    try (Communicator ranks = line.get()) {
                        assertEquals(mesh.length(dimension), ranks.size());
                        assertEquals(mesh.coordinates(communicator.rank())[dimension], ranks.rank());
                    }
                }
            }
            assertTrue(communicator.size() == 7);
        });
    }
}
