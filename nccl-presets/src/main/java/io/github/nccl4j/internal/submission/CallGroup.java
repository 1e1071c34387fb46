package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.operation.BlockLayout;
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
        long send = kind == OperationKind.SEND ? address : 0;
        long recv = kind == OperationKind.SEND ? 0 : address;
        pin(buffer);
        add(kind, send, recv, count, buffer.typeCode, 0, peer, stream);
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

    /** Adds a reduction of a part of a buffer to a root. */
    final void reduce(
            NativeBuffer send,
            NativeBuffer recv,
            long sendAddress,
            long recvAddress,
            long count,
            Operator op,
            int root,
            NativeStream stream) {
        if (count == 0) {
            return;
        }
        pin(send);
        pin(recv);
        pin(op);
        add(OperationKind.REDUCE, sendAddress, recvAddress, count, send.typeCode, op.code, root, stream);
    }

    /** Keeps the buffer alive for the next call, if that call is not made at once. */
    abstract void pin(NativeBuffer buffer);

    abstract void pin(Operator op);

    abstract void add(
            OperationKind kind, long send, long recv, long count, int type, int op, int peer, NativeStream stream);

    abstract void launch();

    @Override
    public abstract void close();
}
