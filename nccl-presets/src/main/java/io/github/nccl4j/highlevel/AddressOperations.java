package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.submission.OperationChecks;
import io.github.nccl4j.internal.submission.OperationSubmitter;

/**
 * The operations of a {@link Communicator} on plain addresses, for memory without a {@link DeviceBuffer}.
 *
 * <pre>{@code
 * long address = buffer.address();
 * communicator.onAddresses().allReduce(address, address, 1024, DataType.FLOAT32, ReduceOp.SUM, stream);
 * }</pre>
 *
 * <p>The contract is that of the communicator's operations on buffers, with one difference: the caller must ensure that
 * the addresses are valid, on the communicator's device, and followed by enough memory until the operation is complete.
 * Counts are in elements; addresses must be multiples of the size of an element.
 *
 * <p><b>Ownership.</b> The object belongs to its communicator and is usable while the communicator is open.
 *
 * <p><b>Threads.</b> As the communicator: one thread at a time.
 *
 * @see Communicator#onAddresses
 * @since 0.1
 */
public final class AddressOperations {
    private final OperationChecks checks;
    private final OperationSubmitter operations;

    AddressOperations(OperationChecks checks, OperationSubmitter operations) {
        this.checks = checks;
        this.operations = operations;
    }

    /**
     * As {@link Communicator#allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with plain addresses.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements
     * @param type the type of the elements
     * @param op the operator
     * @param stream the stream
     */
    public void allReduce(long send, long recv, long count, DataType type, ReduceOp op, CudaStream stream) {
        checks.addresses(OperationKind.ALL_REDUCE, send, recv, count, type, op.operator, 0, stream.nativeStream);
        operations.submit(OperationKind.ALL_REDUCE, send, recv, count, type, op.operator, 0, stream.nativeStream);
    }

    /**
     * As {@link Communicator#reduce(DeviceBuffer, DeviceBuffer, ReduceOp, int, CudaStream)} with plain addresses.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements
     * @param type the type of the elements
     * @param op the operator
     * @param root the rank that gets the result
     * @param stream the stream
     */
    public void reduce(long send, long recv, long count, DataType type, ReduceOp op, int root, CudaStream stream) {
        checks.addresses(OperationKind.REDUCE, send, recv, count, type, op.operator, root, stream.nativeStream);
        operations.submit(OperationKind.REDUCE, send, recv, count, type, op.operator, root, stream.nativeStream);
    }

    /**
     * As {@link Communicator#broadcast(DeviceBuffer, DeviceBuffer, int, CudaStream)} with plain addresses.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements
     * @param type the type of the elements
     * @param root the rank that has the elements
     * @param stream the stream
     */
    public void broadcast(long send, long recv, long count, DataType type, int root, CudaStream stream) {
        checks.addresses(OperationKind.BROADCAST, send, recv, count, type, null, root, stream.nativeStream);
        operations.submit(OperationKind.BROADCAST, send, recv, count, type, null, root, stream.nativeStream);
    }

    /**
     * As {@link Communicator#allGather(DeviceBuffer, DeviceBuffer, CudaStream)} with plain addresses.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements of each rank
     * @param type the type of the elements
     * @param stream the stream
     */
    public void allGather(long send, long recv, long count, DataType type, CudaStream stream) {
        checks.addresses(OperationKind.ALL_GATHER, send, recv, count, type, null, 0, stream.nativeStream);
        operations.submit(OperationKind.ALL_GATHER, send, recv, count, type, null, 0, stream.nativeStream);
    }

    /**
     * As {@link Communicator#reduceScatter(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream)} with plain addresses.
     *
     * @param send the address of this rank's elements
     * @param recv the address of the result
     * @param count the number of elements that each rank gets
     * @param type the type of the elements
     * @param op the operator
     * @param stream the stream
     */
    public void reduceScatter(long send, long recv, long count, DataType type, ReduceOp op, CudaStream stream) {
        checks.addresses(OperationKind.REDUCE_SCATTER, send, recv, count, type, op.operator, 0, stream.nativeStream);
        operations.submit(OperationKind.REDUCE_SCATTER, send, recv, count, type, op.operator, 0, stream.nativeStream);
    }

    /**
     * As {@link Communicator#send(DeviceBuffer, int, CudaStream)} with a plain address.
     *
     * @param address the address of the elements
     * @param count the number of elements
     * @param type the type of the elements
     * @param peer the receiving rank
     * @param stream the stream
     */
    public void send(long address, long count, DataType type, int peer, CudaStream stream) {
        checks.address(address, count, type, peer, stream.nativeStream);
        operations.submit(OperationKind.SEND, address, address, count, type, null, peer, stream.nativeStream);
    }

    /**
     * As {@link Communicator#recv(DeviceBuffer, int, CudaStream)} with a plain address.
     *
     * @param address the address of the destination
     * @param count the number of elements
     * @param type the type of the elements
     * @param peer the sending rank
     * @param stream the stream
     */
    public void recv(long address, long count, DataType type, int peer, CudaStream stream) {
        checks.address(address, count, type, peer, stream.nativeStream);
        operations.submit(OperationKind.RECV, address, address, count, type, null, peer, stream.nativeStream);
    }
}
