package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.operation.BlockLayout;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.operation.Operation.Elements;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.Operator;

/**
 * A group of native calls that form one operation and are launched together. The caller has checked all arguments.
 * Calls with 0 elements are omitted, on both ranks, because NCCL would launch a kernel for them. For the thread that
 * created the group.
 */
public abstract class CallGroup implements AutoCloseable {

    /** Adds a SEND or RECV of a part of a buffer. */
    final void transfer(
            OperationKind kind, NativeBuffer buffer, long offset, long count, int peer, NativeStream stream) {
        if (count == 0) {
            return;
        }
        long address = buffer.addressOf(offset);
        boolean sends = kind == OperationKind.SEND;
        Elements elements = new Elements(sends ? address : 0, sends ? 0 : address, count, buffer.typeCode);
        pin(buffer);
        add(Operation.of(kind, elements, null, peer, stream.handle), stream);
    }

    /** Adds a SEND of one buffer and a RECV of the other. Nothing else may be added. */
    void exchange(NativeBuffer send, int to, NativeBuffer recv, int from, NativeStream stream) {
        transfer(OperationKind.SEND, send, 0, send.length, to, stream);
        transfer(OperationKind.RECV, recv, 0, recv.length, from, stream);
    }

    /** Adds a SEND or RECV of the block of a rank. */
    final void transfer(OperationKind kind, NativeBuffer buffer, BlockLayout blocks, int peer, NativeStream stream) {
        transfer(kind, buffer, blocks.displacements()[peer], blocks.counts()[peer], peer, stream);
    }

    /** Adds a reduction of parts of the buffers to a root. */
    final void reduce(
            NativeBuffer send, NativeBuffer recv, Elements parts, Operator op, int root, NativeStream stream) {
        if (parts.count() == 0) {
            return;
        }
        pin(send);
        pin(recv);
        pin(op);
        add(Operation.of(OperationKind.REDUCE, parts, op, root, stream.handle), stream);
    }

    /** Keeps the buffer alive for the next call, if that call is not made at once. */
    abstract void pin(NativeBuffer buffer);

    abstract void pin(Operator op);

    abstract void add(Operation operation, NativeStream stream);

    abstract void launch();

    @Override
    public abstract void close();
}
