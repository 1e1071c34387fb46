package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * A sum of elements that were multiplied by a number first, each rank's by its own: weighted averages without a kernel.
 *
 * <pre>{@code
 * try (PreMulSum<Float32> mean = communicator.preMulSum(ElementType.FLOAT32, 1.0 / communicator.size())) {
 *     communicator.allReduce(gradients, mean, stream);
 * }
 * }</pre>
 *
 * <p>It can be used with the communicator that made it and with its type of elements only, until it is closed. Closing it
 * right after an operation was called is allowed.
 *
 * <p><b>Ownership.</b> Closed by who made it, else with the communicator.
 *
 * <p><b>Threads.</b> As the communicator: one at a time.
 *
 * @param <T> the type of the elements
 */
public final class PreMulSum<T extends Element> extends ReduceOp implements AutoCloseable {
    private final Communicator communicator;
    private final ElementType<T> type;
    private final Resource resource;

    PreMulSum(int code, Communicator communicator, ElementType<T> type, DeviceBuffer<T> scalar) {
        super(code, "PreMulSum of " + type);
        this.communicator = communicator;
        this.type = type;
        CommunicatorCore core = communicator.core();
        resource = new Resource(
                core,
                this,
                () -> core.callAlone("ncclRedOpDestroy", handle -> nccl.ncclRedOpDestroy(code, handle)),
                scalar == null ? () -> {} : scalar::unpin);
    }

    /** {@return the type of the elements} */
    public ElementType<T> type() {
        return type;
    }

    /** {@return true if it is not closed} */
    public boolean isOpen() {
        return resource.isOpen();
    }

    void check(Communicator user, DataType elements) {
        resource.check();
        if (user != communicator) {
            throw new IllegalArgumentException(
                    "op must be one of the communicator: " + this + " of " + communicator + ", not of " + user);
        }
        if (elements != type.dataType()) {
            throw new IllegalArgumentException(
                    "op must be for the type of the elements: " + this + ", elements of " + elements);
        }
    }

    Resource resource() {
        return resource;
    }

    /**
     * Destroys it. Does nothing if it is closed.
     *
     * <p>C function: {@code ncclRedOpDestroy}, since NCCL 2.11.4.
     *
     * @throws IllegalStateException if another thread is in the communicator, or that is suspended; it is not closed then
     * @throws NcclResultException if NCCL fails; it is closed all the same
     */
    @Override
    public void close() {
        resource.close();
    }
}
