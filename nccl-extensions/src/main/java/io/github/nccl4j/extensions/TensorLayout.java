package io.github.nccl4j.extensions;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * A tensor's shape and its placement on a mesh: which part of the tensor each rank holds. The elements of a part are in
 * row-major order.
 *
 * <pre>{@code
 * Mesh mesh = Mesh.of("data", 2).by("model", 4);
 * TensorLayout layout = TensorLayout.of(mesh, List.of(Placement.replicate(), Placement.shard(0)), 1024, 512);
 * long[] part = layout.shape(3); // 256 rows of 512 elements, from row 768 on
 * }</pre>
 *
 * <p>If several dimensions of the mesh share one dimension of the tensor, the later ones share the parts of the earlier ones.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public final class TensorLayout {
    private final Mesh mesh;
    private final List<Placement> placements;
    private final long[] shape;

    private TensorLayout(Mesh mesh, List<Placement> placements, long[] shape) {
        this.mesh = mesh;
        this.placements = placements;
        this.shape = shape;
    }

    /**
     * Creates a layout.
     *
     * @param mesh the ranks that hold the tensor
     * @param placements a placement for each dimension of the mesh
     * @param shape the shape of the whole tensor, in elements
     * @return the layout
     * @throws IllegalArgumentException if the number of placements is not that of the mesh's dimensions, if the tensor has no
     *     dimension that a placement shards, or if its shape has no or a negative length
     * @throws ArithmeticException if the number of elements is greater than {@link Long#MAX_VALUE}
     */
    public static TensorLayout of(Mesh mesh, List<Placement> placements, long... shape) {
        if (placements.size() != mesh.dimensions()) {
            throw new IllegalArgumentException("there must be a placement per dimension of the mesh: "
                    + placements.size() + " for " + mesh.dimensions());
        }
        for (Placement placement : placements) {
            if (placement.isShard() && placement.dimension() >= shape.length) {
                throw new IllegalArgumentException("a placement must shard a dimension of the tensor: " + placement
                        + " of " + shape.length + " dimensions");
            }
        }
        if (shape.length == 0) {
            throw new IllegalArgumentException("shape must have a dimension");
        }
        for (long length : shape) {
            if (length < 0) {
                throw new IllegalArgumentException("shape must not be negative: " + Arrays.toString(shape));
            }
        }
        elements(shape);
        return new TensorLayout(mesh, List.copyOf(placements), shape.clone());
    }

    /** The number of elements of a part. */
    private static long elements(long... shape) {
        long elements = 1;
        for (long length : shape) {
            elements = Math.multiplyExact(elements, length);
        }
        return elements;
    }

    /** {@return the ranks that hold the tensor} */
    public Mesh mesh() {
        return mesh;
    }

    /** {@return a placement for each dimension of the mesh} */
    public List<Placement> placements() {
        return placements;
    }

    /** {@return the shape of the whole tensor} */
    public long[] shape() {
        return shape.clone();
    }

    /**
     * Returns the shape of a rank's part.
     *
     * @param rank the rank
     * @return the length in each dimension; all 0 for a rank outside the mesh
     */
    public long[] shape(int rank) {
        return box(rank).lengths();
    }

    /**
     * Returns the place of a rank's part in the tensor.
     *
     * @param rank the rank
     * @return the index of the part's first element in each dimension; all 0 for a rank outside the mesh
     */
    public long[] offset(int rank) {
        return box(rank).starts();
    }

    /**
     * Returns the number of elements of a rank's part.
     *
     * @param rank the rank
     * @return the number; 0 for a rank outside the mesh
     */
    public long elements(int rank) {
        return elements(shape(rank));
    }

    /** The part of a rank. */
    Box box(int rank) {
        long[] starts = new long[shape.length];
        if (!mesh.contains(rank)) {
            return new Box(starts, new long[shape.length]);
        }
        long[] lengths = shape.clone();
        int[] coordinates = mesh.coordinates(rank);
        for (int i = 0; i < coordinates.length; i++) {
            if (placements.get(i).isShard()) {
                int dimension = placements.get(i).dimension();
                int parts = mesh.length(i);
                long share = (lengths[dimension] + parts - 1) / parts;
                long before = Math.min(share * coordinates[i], lengths[dimension]);
                starts[dimension] += before;
                lengths[dimension] = Math.min(share, lengths[dimension] - before);
            }
        }
        return new Box(starts, lengths);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TensorLayout layout
                && mesh.equals(layout.mesh)
                && placements.equals(layout.placements)
                && Arrays.equals(shape, layout.shape);
    }

    @Override
    public int hashCode() {
        return Objects.hash(mesh, placements, Arrays.hashCode(shape));
    }

    @Override
    public String toString() {
        return Arrays.toString(shape) + " " + placements + " on " + mesh;
    }
}
