package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.submission.CreatedOperator;

/**
 * An operator that multiplies the elements of each rank by the rank's factor and sums the products: a weighted average
 * without a kernel.
 *
 * <pre>{@code
 * try (PreMulSum<Float32> mean = communicator.preMulSum(ElementType.FLOAT32, 1.0 / communicator.size())) {
 *     communicator.allReduce(gradients, mean, stream);
 * }
 * }</pre>
 *
 * <p>An operator is usable only with the communicator that created it and with its element type, until it is closed. It
 * may be closed right after the call of an operation.
 *
 * <p><b>Ownership.</b> The creator closes the operator, or it is closed with the communicator.
 *
 * <p><b>Threads.</b> As the communicator: one thread at a time.
 *
 * @param <T> the type of the elements
 * @since 0.1
 */
public final class PreMulSum<T extends Element> extends ReduceOp implements AutoCloseable {
    private final ElementType<T> type;
    private final Resource resource;

    PreMulSum(ElementType<T> type, CreatedOperator operator) {
        super(operator);
        this.type = type;
        resource = operator.resource;
    }

    /** {@return the type of the elements} */
    public ElementType<T> type() {
        return type;
    }

    /** {@return true if the operator is not closed} */
    public boolean isOpen() {
        return resource.isOpen();
    }

    /**
     * Destroys the operator. Does nothing if the operator is closed already.
     *
     * <p>C function: {@code ncclRedOpDestroy}, since NCCL 2.11.4.
     *
     * @throws IllegalStateException if another thread uses the communicator, or the communicator is suspended; the
     *     operator stays open then
     * @throws NcclResultException if NCCL fails; the operator is closed nevertheless
     */
    @Override
    public void close() {
        resource.close();
    }
}
