package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Sum of elements that are first multiplied by a factor of each rank: weighted averages without a kernel.
 *
 * <pre>{@code
 * try (PreMulSum<Float32> mean = communicator.preMulSum(ElementType.FLOAT32, 1.0 / communicator.size())) {
 *     communicator.allReduce(gradients, mean, stream);
 * }
 * }</pre>
 *
 * <p>Usable only with the communicator that created it and with its element type, until it is closed. It may be closed
 * right after an operation was called.
 *
 * <p><b>Ownership.</b> Closed by its creator, else with the communicator.
 *
 * <p><b>Threads.</b> As the communicator: one thread at a time.
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
     * Destroys the operator. Does nothing if it is closed already.
     *
     * <p>C function: {@code ncclRedOpDestroy}, since NCCL 2.11.4.
     *
     * @throws IllegalStateException if another thread is in the communicator, or the communicator is suspended; the
     *     operator stays open
     * @throws NcclResultException if NCCL fails; the operator is closed all the same
     */
    @Override
    public void close() {
        resource.close();
    }
}
