package io.github.nccl4j.extensions;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import java.util.Objects;
import java.util.Optional;

/**
 * One rank's part of a tensor that is distributed over a mesh.
 *
 * <pre>{@code
 * TensorLayout layout = TensorLayout.of(Mesh.of("model", 4), List.of(Placement.shard(0)), 1024, 512);
 * try (DistributedTensor<Float32> weights = DistributedTensor.allocate(communicator, layout, ElementType.FLOAT32)) {
 *     weights.local().ifPresent(part -> part.fill(0));
 * }
 * }</pre>
 *
 * <p><b>Ownership.</b> The creator closes the tensor, which frees memory that {@link #allocate} has allocated, but no buffer of
 * {@link #wrap}.
 *
 * <p><b>Threads.</b> Any thread may call the methods.
 *
 * @param <T> the type of the elements
 * @since 0.1
 */
public final class DistributedTensor<T extends Element> implements AutoCloseable {
    private final TensorLayout layout;
    private final ElementType<T> type;
    private final Optional<DeviceBuffer<T>> local;
    private final boolean isOwner;

    private DistributedTensor(
            TensorLayout layout, ElementType<T> type, Optional<DeviceBuffer<T>> local, boolean isOwner) {
        this.layout = layout;
        this.type = type;
        this.local = local;
        this.isOwner = isOwner;
    }

    /**
     * Allocates this rank's part on the communicator's device. A rank whose part is empty, such as one outside the mesh, gets a
     * tensor without memory.
     *
     * @param <T> the type of the elements
     * @param communicator a communicator with all ranks of the mesh
     * @param layout the layout
     * @param type the type of the elements
     * @return the tensor, to be closed by the caller
     * @throws IllegalArgumentException if the communicator lacks ranks of the mesh
     */
    public static <T extends Element> DistributedTensor<T> allocate(
            Communicator communicator, TensorLayout layout, ElementType<T> type) {
        layout.mesh().requireWithin(communicator);
        long elements = layout.elements(communicator.rank());
        Optional<DeviceBuffer<T>> local = elements == 0
                ? Optional.empty()
                : Optional.of(communicator.device().allocate(type, elements));
        return new DistributedTensor<>(layout, Objects.requireNonNull(type, "type"), local, true);
    }

    /**
     * Makes a tensor of this rank's part in existing memory. A rank whose part is empty calls {@link #allocate}.
     *
     * @param <T> the type of the elements
     * @param communicator a communicator with all ranks of the mesh
     * @param layout the layout
     * @param part the elements of this rank, which the caller keeps open
     * @return the tensor
     * @throws IllegalArgumentException if the part does not have the length of {@link TensorLayout#elements}, or is on another
     *     device than the communicator
     */
    public static <T extends Element> DistributedTensor<T> wrap(
            Communicator communicator, TensorLayout layout, DeviceBuffer<T> part) {
        layout.mesh().requireWithin(communicator);
        long elements = layout.elements(communicator.rank());
        if (part.length() != elements) {
            throw new IllegalArgumentException(
                    "part must have the length of the rank's part: " + part.length() + ", not " + elements);
        }
        if (!part.device().equals(communicator.device())) {
            throw new IllegalArgumentException(
                    "part must be on the communicator's device: " + part.device() + ", not " + communicator.device());
        }
        return new DistributedTensor<>(layout, part.type(), Optional.of(part), false);
    }

    /** {@return the layout of the whole tensor} */
    public TensorLayout layout() {
        return layout;
    }

    /** {@return the type of the elements} */
    public ElementType<T> type() {
        return type;
    }

    /** {@return the elements of this rank; empty if it has none} */
    public Optional<DeviceBuffer<T>> local() {
        return local;
    }

    /** Frees the memory of {@link #allocate}. */
    @Override
    public void close() {
        if (isOwner) {
            local.ifPresent(DeviceBuffer::close);
        }
    }

    @Override
    public String toString() {
        return type + " " + layout;
    }
}
