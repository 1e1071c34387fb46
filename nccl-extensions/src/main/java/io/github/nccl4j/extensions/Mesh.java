package io.github.nccl4j.extensions;

import io.github.nccl4j.highlevel.Communicator;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Consecutive ranks of a communicator, arranged in named dimensions. The last dimension varies fastest, as in PyTorch's
 * {@code DeviceMesh} and in NCCL M2N.
 *
 * <pre>{@code
 * Mesh mesh = Mesh.of("data", 2).by("model", 4); // ranks 0 to 7; 0 to 3 share their data
 * try (Communicator model = mesh.split(communicator, "model").orElseThrow()) {
 *     model.allReduce(buffer, ReduceOp.SUM, stream);
 * }
 * }</pre>
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public final class Mesh {
    private final List<String> names;
    private final int[] lengths;
    private final int firstRank;
    private final int size;

    private Mesh(List<String> names, int[] lengths, int firstRank) {
        long ranks = firstRank;
        long product = 1;
        for (int length : lengths) {
            product *= length;
            ranks = firstRank + product;
            if (ranks > Integer.MAX_VALUE) {
                throw new IllegalArgumentException("a mesh must end below rank " + Integer.MAX_VALUE + ": " + ranks);
            }
        }
        this.names = List.copyOf(names);
        this.lengths = lengths;
        this.firstRank = firstRank;
        this.size = (int) product;
    }

    /**
     * Creates a mesh of one dimension that begins at rank 0.
     *
     * @param name the name of the dimension
     * @param length the number of ranks
     * @return the mesh
     * @throws IllegalArgumentException if the length is less than 1
     */
    public static Mesh of(String name, int length) {
        return new Mesh(List.of(), new int[0], 0).by(name, length);
    }

    /**
     * Returns this mesh with one more dimension, which varies fastest.
     *
     * @param name the name of the dimension
     * @param length the number of ranks in the dimension
     * @return the new mesh
     * @throws IllegalArgumentException if the length is less than 1, or if the mesh has a dimension of this name
     */
    public Mesh by(String name, int length) {
        Objects.requireNonNull(name, "name");
        if (length < 1) {
            throw new IllegalArgumentException("length must be at least 1: " + length);
        }
        if (names.contains(name)) {
            throw new IllegalArgumentException("the mesh has a dimension of this name already: " + name);
        }
        List<String> more = new ArrayList<>(names);
        more.add(name);
        int[] longer = new int[lengths.length + 1];
        System.arraycopy(lengths, 0, longer, 0, lengths.length);
        longer[lengths.length] = length;
        return new Mesh(more, longer, firstRank);
    }

    /**
     * Returns this mesh on other ranks.
     *
     * @param rank the first rank
     * @return the mesh on as many ranks from this one on
     * @throws IllegalArgumentException if the rank is negative
     */
    public Mesh startingAt(int rank) {
        if (rank < 0) {
            throw new IllegalArgumentException("rank must be at least 0: " + rank);
        }
        return new Mesh(names, lengths, rank);
    }

    /** {@return the names of the dimensions} */
    public List<String> names() {
        return names;
    }

    /** {@return the number of dimensions} */
    public int dimensions() {
        return lengths.length;
    }

    /**
     * Returns the length of a dimension.
     *
     * @param dimension the index of the dimension
     * @return the number of ranks in the dimension
     * @throws IndexOutOfBoundsException if there is no such dimension
     */
    public int length(int dimension) {
        return lengths[Objects.checkIndex(dimension, lengths.length)];
    }

    /**
     * Returns the index of a dimension.
     *
     * @param name the name of the dimension
     * @return the index
     * @throws IllegalArgumentException if there is no such dimension
     */
    public int dimension(String name) {
        int index = names.indexOf(name);
        if (index < 0) {
            throw new IllegalArgumentException("the mesh has the dimensions " + names + ", not " + name);
        }
        return index;
    }

    /** {@return the first rank} */
    public int firstRank() {
        return firstRank;
    }

    /** {@return the number of ranks} */
    public int size() {
        return size;
    }

    /**
     * Returns true if a rank is in this mesh.
     *
     * @param rank a rank of the communicator
     * @return true if the mesh has the rank
     */
    public boolean contains(int rank) {
        return rank >= firstRank && rank - firstRank < size;
    }

    /**
     * Returns the place of a rank in each dimension.
     *
     * @param rank a rank of this mesh
     * @return an index per dimension
     * @throws IllegalArgumentException if the mesh does not have the rank
     */
    public int[] coordinates(int rank) {
        if (!contains(rank)) {
            throw new IllegalArgumentException("rank must be in " + this + ": " + rank);
        }
        int[] coordinates = new int[lengths.length];
        int rest = rank - firstRank;
        for (int i = lengths.length - 1; i >= 0; i--) {
            coordinates[i] = rest % lengths[i];
            rest /= lengths[i];
        }
        return coordinates;
    }

    /**
     * Returns the rank at a place.
     *
     * @param coordinates an index per dimension
     * @return the rank
     * @throws IllegalArgumentException if the number of indices is not that of the dimensions
     * @throws IndexOutOfBoundsException if an index is not in its dimension
     */
    public int rank(int... coordinates) {
        if (coordinates.length != lengths.length) {
            throw new IllegalArgumentException(
                    "coordinates must have an index per dimension: " + coordinates.length + " for " + names);
        }
        int rank = 0;
        for (int i = 0; i < lengths.length; i++) {
            rank = rank * lengths[i] + Objects.checkIndex(coordinates[i], lengths[i]);
        }
        return firstRank + rank;
    }

    /**
     * Creates the communicators of a dimension: one for each line of ranks that differ in this dimension only, in its order.
     * Collective over all ranks of the communicator, also those outside the mesh.
     *
     * <p>C function: {@code ncclCommSplit}, since NCCL 2.18.1.
     *
     * @param communicator a communicator with all ranks of this mesh
     * @param dimension the name of the dimension
     * @return the communicator of this rank, to be closed by the caller; empty outside the mesh
     * @throws IllegalArgumentException if there is no such dimension, or if the communicator has fewer ranks
     */
    public Optional<Communicator> split(Communicator communicator, String dimension) {
        int index = dimension(dimension);
        requireWithin(communicator);
        if (!contains(communicator.rank())) {
            communicator.splitNone();
            return Optional.empty();
        }
        int[] line = coordinates(communicator.rank());
        int key = line[index];
        line[index] = 0;
        return Optional.of(communicator.split(rank(line) - firstRank, key));
    }

    /** Throws if a communicator lacks ranks of this mesh. */
    void requireWithin(Communicator communicator) {
        if (firstRank + size > communicator.size()) {
            throw new IllegalArgumentException(
                    "the communicator must have all ranks of the mesh: " + communicator.size() + " ranks, " + this);
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Mesh mesh
                && firstRank == mesh.firstRank
                && names.equals(mesh.names)
                && Arrays.equals(lengths, mesh.lengths);
    }

    @Override
    public int hashCode() {
        return Objects.hash(names, Arrays.hashCode(lengths), firstRank);
    }

    @Override
    public String toString() {
        return IntStream.range(0, lengths.length)
                        .mapToObj(i -> names.get(i) + " " + lengths[i])
                        .collect(Collectors.joining(" x ", "mesh ", ""))
                + " of ranks " + firstRank + " to " + (firstRank + size - 1);
    }
}
