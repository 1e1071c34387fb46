package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.operation.BlockLayout;
import io.github.nccl4j.internal.operation.Operation.Elements;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationKind.Peer;
import io.github.nccl4j.internal.operation.Operator;
import java.util.List;

/**
 * Operations of a communicator that consist of several calls of NCCL, launched together: operations for which NCCL, or
 * an older library, has no function. For the communicator's thread.
 */
public final class ComposedOperations {
    private final CommunicatorCore core;
    private final OperationChecks checks;
    private final OperationSubmitter operations;

    /** Bits by code: set if the library lacks the function. Cached, because a query takes longer than a call. */
    private int lacking;

    public ComposedOperations(CommunicatorCore core, OperationChecks checks, OperationSubmitter operations) {
        this.core = core;
        this.checks = checks;
        this.operations = operations;
        for (OperationKind kind : List.of(OperationKind.ALL_TO_ALL, OperationKind.GATHER, OperationKind.SCATTER)) {
            lacking |= core.library().provides(kind.function()) ? 0 : 1 << kind.code();
        }
    }

    /** True if the library lacks the function of a kind, which {@link #replace} replaces. */
    public boolean replaces(OperationKind kind) {
        return (lacking & 1 << kind.code()) != 0;
    }

    /** Makes an ALL_TO_ALL, a GATHER or a SCATTER without its function. */
    public void replace(OperationKind kind, NativeBuffer send, NativeBuffer recv, int root, NativeStream stream) {
        long count = checks.collective(kind, send, recv, null, root);
        checks.each(send, recv, stream);
        if (kind == OperationKind.GATHER) {
            rooted(kind, recv, null, count, send, root, stream);
        } else if (kind == OperationKind.SCATTER) {
            rooted(kind, send, null, count, recv, root, stream);
        } else {
            try (CallGroup calls = operations.callGroup(send, recv)) {
                for (int peer = 0; peer < core.size(); peer++) {
                    calls.transfer(OperationKind.SEND, send, peer * count, count, peer, stream);
                    calls.transfer(OperationKind.RECV, recv, peer * count, count, peer, stream);
                }
                calls.launch();
            }
        }
    }

    public void gatherv(
            NativeBuffer send, NativeBuffer recv, long[] counts, long[] displacements, int root, NativeStream stream) {
        checks.root(root);
        if (core.rank() != root) {
            gatherv(send, root, stream);
            return;
        }
        checks.each(send, recv, stream);
        BlockLayout blocks = BlockLayout.checked("recv", counts, displacements, core.size(), recv.length, true);
        OperationChecks.equal("send.length()", send.length, "counts[rank()]", blocks.counts()[root]);
        rooted(OperationKind.GATHER, recv, blocks, send.length, send, root, stream);
    }

    public void gatherv(NativeBuffer send, int root, NativeStream stream) {
        checks.otherRoot(root, "recv");
        checks.each(send, stream);
        rooted(OperationKind.GATHER, null, null, send.length, send, root, stream);
    }

    public void scatterv(
            NativeBuffer send, long[] counts, long[] displacements, NativeBuffer recv, int root, NativeStream stream) {
        checks.root(root);
        if (core.rank() != root) {
            scatterv(recv, root, stream);
            return;
        }
        checks.each(send, recv, stream);
        BlockLayout blocks = BlockLayout.checked("send", counts, displacements, core.size(), send.length, false);
        OperationChecks.equal("recv.length()", recv.length, "counts[rank()]", blocks.counts()[root]);
        rooted(OperationKind.SCATTER, send, blocks, recv.length, recv, root, stream);
    }

    public void scatterv(NativeBuffer recv, int root, NativeStream stream) {
        checks.otherRoot(root, "send");
        checks.each(recv, stream);
        rooted(OperationKind.SCATTER, null, null, recv.length, recv, root, stream);
    }

    /**
     * Moves blocks between the root's buffer of all blocks and each rank's own buffer.
     *
     * @param kind GATHER or SCATTER
     * @param whole the buffer of all blocks; used on the root only
     * @param blocks the blocks of whole; null if they are consecutive and have the same length
     * @param count the length of this rank's block
     * @param part this rank's block
     */
    private void rooted(
            OperationKind kind,
            NativeBuffer whole,
            BlockLayout blocks,
            long count,
            NativeBuffer part,
            int root,
            NativeStream stream) {
        boolean gathers = kind.peer() == Peer.RECEIVES;
        OperationKind atRoot = gathers ? OperationKind.RECV : OperationKind.SEND;
        OperationKind atEach = gathers ? OperationKind.SEND : OperationKind.RECV;
        boolean isRoot = core.rank() == root;
        boolean inPlace = isRoot && whole.addressOf(offset(blocks, root, count)) == part.address;
        if (isRoot && !inPlace) {
            OperationChecks.disjoint(part, whole);
        }
        try (CallGroup calls = operations.callGroup(part, isRoot ? whole : null)) {
            for (int peer = 0; isRoot && peer < core.size(); peer++) {
                if (peer != root || !inPlace) {
                    long length = blocks == null ? count : blocks.counts()[peer];
                    calls.transfer(atRoot, whole, offset(blocks, peer, count), length, peer, stream);
                }
            }
            if (!inPlace) {
                calls.transfer(atEach, part, 0, count, root, stream);
            }
            calls.launch();
        }
    }

    private static long offset(BlockLayout blocks, int rank, long count) {
        return blocks == null ? rank * count : blocks.displacements()[rank];
    }

    public void sendRecv(NativeBuffer send, int to, NativeBuffer recv, int from, NativeStream stream) {
        checks.peer("to", to);
        checks.peer("from", from);
        checks.each(send, recv, stream);
        OperationChecks.disjoint(send, recv);
        int rank = core.rank();
        if (to == rank != (from == rank)) {
            throw new IllegalArgumentException("a rank that sends to itself must receive from itself: to " + to
                    + ", from " + from + ", rank " + rank);
        }
        if (to == rank) {
            OperationChecks.equal("recv.length()", recv.length, "send.length()", send.length);
        }
        try (CallGroup calls = operations.callGroup(send, recv)) {
            calls.exchange(send, to, recv, from, stream);
            calls.launch();
        }
    }

    public void allGatherv(
            NativeBuffer send, NativeBuffer recv, long[] counts, long[] displacements, NativeStream stream) {
        checks.each(send, recv, stream);
        int rank = core.rank();
        BlockLayout blocks = BlockLayout.checked("recv", counts, displacements, core.size(), recv.length, true);
        long own = blocks.counts()[rank];
        OperationChecks.equal("send.length()", send.length, "counts[rank()]", own);
        boolean inPlace = recv.addressOf(blocks.displacements()[rank]) == send.address;
        if (!inPlace) {
            OperationChecks.disjoint(send, recv);
        }
        try (CallGroup calls = operations.callGroup(send, recv)) {
            for (int peer = 0; peer < core.size(); peer++) {
                if (peer == rank && inPlace) {
                    continue;
                }
                calls.transfer(OperationKind.SEND, send, 0, own, peer, stream);
                calls.transfer(OperationKind.RECV, recv, blocks, peer, stream);
            }
            calls.launch();
        }
    }

    public void reduceScatterv(NativeBuffer send, NativeBuffer recv, long[] counts, Operator op, NativeStream stream) {
        checks.each(send, recv, stream);
        checks.operator(op, send.format.type());
        int rank = core.rank();
        BlockLayout blocks = BlockLayout.consecutive("send", counts, core.size(), send.length);
        OperationChecks.equal("recv.length()", recv.length, "counts[rank()]", blocks.counts()[rank]);
        boolean inPlace = send.addressOf(blocks.displacements()[rank]) == recv.address;
        if (!inPlace) {
            OperationChecks.disjoint(send, recv);
        }
        try (CallGroup calls = operations.callGroup(send, recv)) {
            for (int root = 0; root < core.size(); root++) {
                long part = send.addressOf(blocks.displacements()[root]);
                // NCCL writes to the target on the root only.
                long target = root == rank ? recv.address : part;
                Elements parts = new Elements(part, target, blocks.counts()[root], send.typeCode);
                calls.reduce(send, recv, parts, op, root, stream);
            }
            calls.launch();
        }
    }

    public void allToAllv(Blocks send, Blocks recv, NativeStream stream) {
        checks.each(send.buffer(), recv.buffer(), stream);
        OperationChecks.disjoint(send.buffer(), recv.buffer());
        int rank = core.rank();
        BlockLayout sends = send.layout("send", core, false);
        BlockLayout receives = recv.layout("recv", core, true);
        OperationChecks.equal(
                "recvCounts[rank()]", receives.counts()[rank], "sendCounts[rank()]", sends.counts()[rank]);
        exchangeBlocks(send.buffer(), sends, recv.buffer(), receives, stream);
    }

    /** Makes all sends and receives of an all-to-all whose arguments were checked. */
    public void exchangeBlocks(
            NativeBuffer send, BlockLayout sends, NativeBuffer recv, BlockLayout receives, NativeStream stream) {
        try (CallGroup calls = operations.callGroup(send, recv)) {
            for (int peer = 0; peer < core.size(); peer++) {
                calls.transfer(OperationKind.SEND, send, sends, peer, stream);
                calls.transfer(OperationKind.RECV, recv, receives, peer, stream);
            }
            calls.launch();
        }
    }
}
