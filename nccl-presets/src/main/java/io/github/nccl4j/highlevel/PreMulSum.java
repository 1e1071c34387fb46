package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.memory.NativeMemory;

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
    private final CommunicatorCore core;
    private final ElementType<T> type;
    private final Resource resource;

    private PreMulSum(int code, CommunicatorCore core, ElementType<T> type, DeviceBuffer<T> scalar) {
        super(code, "PreMulSum of " + type);
        this.core = core;
        this.type = type;
        resource = new Resource(
                core,
                this,
                () -> core.calls().callAlone("ncclRedOpDestroy", handle -> nccl.ncclRedOpDestroy(code, handle)),
                scalar == null ? () -> {} : scalar::unpin);
    }

    /** Creates an operator for a type that the library supports. */
    static <T extends Element> PreMulSum<T> create(CommunicatorCore core, ElementType<T> type, double scalar) {
        long bits;
        if (type.isFloat()) {
            bits = type.format.bitsOf(scalar);
        } else if (scalar == Math.rint(scalar) && scalar >= -0x1p63 && scalar < 0x1p63) {
            bits = type.format.bitsOf((long) scalar);
        } else {
            throw new IllegalArgumentException(
                    "scalar must be an integer from -2^63 to 2^63 - 1 for " + type + ": " + scalar);
        }
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            cell.buffer().putLong(0, bits);
            return create(core, type, cell.address(), ScalarResidence.HOST_IMMEDIATE, null);
        }
    }

    /** Creates an operator with a factor in the memory of the device. The buffer must have been checked. */
    static <T extends Element> PreMulSum<T> create(CommunicatorCore core, DeviceBuffer<T> scalar) {
        scalar.pin();
        boolean made = false;
        try {
            PreMulSum<T> operator = create(core, scalar.type, scalar.address, ScalarResidence.DEVICE, scalar);
            made = true;
            return operator;
        } finally {
            if (!made) {
                scalar.unpin();
            }
        }
    }

    private static <T extends Element> PreMulSum<T> create(
            CommunicatorCore core,
            ElementType<T> type,
            long scalar,
            ScalarResidence residence,
            DeviceBuffer<T> buffer) {
        core.requireOpen();
        try (NativeMemory cell = new NativeMemory(Integer.BYTES)) {
            core.calls()
                    .callAlone(
                            "ncclRedOpCreatePreMulSum",
                            handle -> nccl.ncclRedOpCreatePreMulSum(
                                    cell.address(), scalar, type.nativeCode(), residence.code(), handle));
            return new PreMulSum<>(cell.buffer().getInt(0), core, type, buffer);
        }
    }

    /** {@return the type of the elements} */
    public ElementType<T> type() {
        return type;
    }

    /** {@return true if the operator is not closed} */
    public boolean isOpen() {
        return resource.isOpen();
    }

    void check(CommunicatorCore user, DataType elements) {
        resource.check();
        if (user != core) {
            throw new IllegalArgumentException("op belongs to " + core + ", not to " + user + ": " + this);
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
