package io.github.nccl4j.extensions;

/**
 * The placement of a tensor on a dimension of a mesh: its ranks share a dimension of the tensor, or hold the same elements.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public final class Placement {
    private static final int NONE = -1;
    private static final Placement REPLICATE = new Placement(NONE);

    private final int dimension;

    private Placement(int dimension) {
        this.dimension = dimension;
    }

    /** {@return the placement in which all ranks of the dimension of the mesh hold the same} */
    public static Placement replicate() {
        return REPLICATE;
    }

    /**
     * Returns the placement in which the ranks of the dimension of the mesh share a dimension of the tensor. As in PyTorch,
     * each rank has the rounded-up share, and the last ones may have less or nothing.
     *
     * @param dimension the index of the tensor's dimension
     * @return the placement
     * @throws IllegalArgumentException if the index is negative
     */
    public static Placement shard(int dimension) {
        if (dimension < 0) {
            throw new IllegalArgumentException("dimension must be at least 0: " + dimension);
        }
        return new Placement(dimension);
    }

    /** {@return true if the ranks share a dimension of the tensor} */
    public boolean isShard() {
        return dimension != NONE;
    }

    /**
     * Returns the shared dimension of the tensor.
     *
     * @return the index of the dimension
     * @throws IllegalStateException if this placement replicates
     */
    public int dimension() {
        if (!isShard()) {
            throw new IllegalStateException("a replicated placement has no dimension");
        }
        return dimension;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Placement placement && dimension == placement.dimension;
    }

    @Override
    public int hashCode() {
        return dimension;
    }

    @Override
    public String toString() {
        return isShard() ? "shard(" + dimension + ")" : "replicate";
    }
}
