package io.github.nccl4j.extensions;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Which layouts NCCL M2N moves. */
class M2nCopyTest {
    private static final Placement ALL = Placement.replicate();
    private static final Placement ROWS = Placement.shard(0);
    private static final Placement COLUMNS = Placement.shard(1);
    private static final Mesh LEFT = Mesh.of("x", 2);
    private static final Mesh RIGHT = LEFT.startingAt(2);

    private static TensorLayout matrix(Mesh mesh, Placement... placements) {
        return TensorLayout.of(mesh, List.of(placements), 4, 6);
    }

    private static void check(boolean expected, TensorLayout layout) {
        TensorLayout apart = TensorLayout.of(Mesh.of("x", 1).startingAt(8), List.of(ALL), layout.shape());
        assertEquals(expected, M2nCopy.canMove(layout, apart, 9), layout::toString);
        assertEquals(expected, M2nCopy.canMove(apart, layout, 9), layout::toString);
    }

    @Test
    void meshesOfOneOrTwoDimensions() {
        check(true, matrix(LEFT, ROWS));
        check(true, matrix(LEFT.by("y", 3), ALL, COLUMNS));
        check(false, matrix(LEFT.by("y", 2).by("z", 2), ALL, ALL, ALL));
    }

    @Test
    void oneEvenShard() {
        check(true, matrix(LEFT.by("y", 2), ALL, ALL));
        check(false, matrix(LEFT.by("y", 2), ROWS, COLUMNS));
        check(false, matrix(Mesh.of("x", 3), ROWS));
        check(true, matrix(Mesh.of("x", 3), COLUMNS));
    }

    @Test
    void tensorsOfOneToThreeDimensionsWithElements() {
        check(true, TensorLayout.of(LEFT, List.of(ROWS), 2));
        check(true, TensorLayout.of(LEFT, List.of(ROWS), 2, 1, 1));
        check(false, TensorLayout.of(LEFT, List.of(ROWS), 2, 1, 1, 1));
        check(false, TensorLayout.of(LEFT, List.of(ROWS), 0));
        check(false, TensorLayout.of(LEFT, List.of(ROWS), 2, 0));
    }

    @Test
    void meshesApartUnlessThereIsOneRank() {
        TensorLayout left = matrix(LEFT, ROWS);
        assertEquals(true, M2nCopy.canMove(left, matrix(RIGHT, ROWS), 4));
        assertEquals(true, M2nCopy.canMove(matrix(RIGHT, ROWS), left, 4));
        assertEquals(false, M2nCopy.canMove(left, matrix(LEFT.startingAt(1), ROWS), 4));
        assertEquals(false, M2nCopy.canMove(matrix(LEFT.startingAt(1), ROWS), left, 4));
        assertEquals(false, M2nCopy.canMove(left, left, 4));
        TensorLayout alone = matrix(Mesh.of("x", 1), ROWS);
        assertEquals(true, M2nCopy.canMove(alone, alone, 1));
        assertEquals(false, M2nCopy.canMove(alone, alone, 2));
    }
}
