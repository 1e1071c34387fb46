package io.github.nccl4j.internal.operation;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.ElementType;
import java.util.List;

/**
 * An operation that transfers data: its C function, and the properties that checks, records and messages use. To add an
 * operation, add its code, its constant and its line in {@link #KINDS}, and the calls of C at the end of this class.
 *
 * <p>A record, not an enum, because C2 trusts the fields of a constant record: it evaluates all conditions on the kind
 * of a call when it compiles the call.
 *
 * @param code the number in records: the index in {@link #KINDS}
 * @param function the name of the C function
 * @param shape the relation of the lengths of the buffers
 * @param peer the role of the root or of the other rank
 * @param isCollective true if all ranks of the communicator call the operation
 * @param reduces true if the operation has an operator
 */
public record OperationKind(int code, String function, Shape shape, Peer peer, boolean isCollective, boolean reduces) {

    /** Relations of the lengths of the send and receive buffers, and the memory that they may share. */
    public enum Shape {
        /** Both have the same length; they may be the same memory. */
        ELEMENTWISE,
        /** The receive buffer has the send buffers of all ranks, in which the send buffer may be this rank's part. */
        GATHERED,
        /** The send buffer has the receive buffers of all ranks, in which the receive buffer may be this rank's part. */
        SCATTERED,
        /** Both have a part for each rank; they must not share memory. */
        EXCHANGED,
        /** Both have a part for each rank, of a length that the call gives; they must not share memory. */
        BLOCKS,
        /** There is one buffer of elements. */
        ONE_BUFFER,
        /** There are no elements. */
        NO_ELEMENTS
    }

    /** The role of the root or of the other rank. */
    public enum Peer {
        NONE,
        RECEIVES,
        SENDS,
        /** The signals come from one rank or several. */
        SIGNALS
    }

    /** The codes of the operations: packed records hold them, and a switch over them needs constants of the language. */
    public static final class Code {
        public static final int ALL_REDUCE = 0;
        public static final int REDUCE = 1;
        public static final int BROADCAST = 2;
        public static final int ALL_GATHER = 3;
        public static final int REDUCE_SCATTER = 4;
        public static final int ALL_TO_ALL = 5;
        public static final int GATHER = 6;
        public static final int SCATTER = 7;
        public static final int SEND = 8;
        public static final int RECV = 9;
        public static final int PUT_SIGNAL = 10;
        public static final int SIGNAL = 11;
        public static final int WAIT_SIGNAL = 12;
        public static final int ALL_TO_ALLV = 13;
        public static final int NONE = 14;

        private Code() {}
    }

    public static final OperationKind ALL_REDUCE =
            reduction(Code.ALL_REDUCE, "ncclAllReduce", Shape.ELEMENTWISE, Peer.NONE);
    public static final OperationKind REDUCE = reduction(Code.REDUCE, "ncclReduce", Shape.ELEMENTWISE, Peer.RECEIVES);
    public static final OperationKind BROADCAST =
            collective(Code.BROADCAST, "ncclBroadcast", Shape.ELEMENTWISE, Peer.SENDS);
    public static final OperationKind ALL_GATHER =
            collective(Code.ALL_GATHER, "ncclAllGather", Shape.GATHERED, Peer.NONE);
    public static final OperationKind REDUCE_SCATTER =
            reduction(Code.REDUCE_SCATTER, "ncclReduceScatter", Shape.SCATTERED, Peer.NONE);
    public static final OperationKind ALL_TO_ALL =
            collective(Code.ALL_TO_ALL, "ncclAlltoAll", Shape.EXCHANGED, Peer.NONE);
    public static final OperationKind GATHER = collective(Code.GATHER, "ncclGather", Shape.GATHERED, Peer.RECEIVES);
    public static final OperationKind SCATTER = collective(Code.SCATTER, "ncclScatter", Shape.SCATTERED, Peer.SENDS);
    public static final OperationKind SEND = ofOneRank(Code.SEND, "ncclSend", Shape.ONE_BUFFER, Peer.RECEIVES);
    public static final OperationKind RECV = ofOneRank(Code.RECV, "ncclRecv", Shape.ONE_BUFFER, Peer.SENDS);
    public static final OperationKind PUT_SIGNAL =
            ofOneRank(Code.PUT_SIGNAL, "ncclPutSignal", Shape.ONE_BUFFER, Peer.RECEIVES);
    public static final OperationKind SIGNAL = ofOneRank(Code.SIGNAL, "ncclSignal", Shape.NO_ELEMENTS, Peer.RECEIVES);
    public static final OperationKind WAIT_SIGNAL =
            ofOneRank(Code.WAIT_SIGNAL, "ncclWaitSignal", Shape.NO_ELEMENTS, Peer.SIGNALS);
    /** Not callable by {@link #call}, since the libraries have different forms. */
    public static final OperationKind ALL_TO_ALLV =
            collective(Code.ALL_TO_ALLV, "ncclAlltoAllv", Shape.BLOCKS, Peer.NONE);
    /** No operation, before the first one of a communicator. */
    public static final OperationKind NONE = ofOneRank(Code.NONE, "no operation", Shape.NO_ELEMENTS, Peer.NONE);

    private static OperationKind collective(int code, String function, Shape shape, Peer peer) {
        return new OperationKind(code, function, shape, peer, true, false);
    }

    private static OperationKind reduction(int code, String function, Shape shape, Peer peer) {
        return new OperationKind(code, function, shape, peer, true, true);
    }

    private static OperationKind ofOneRank(int code, String function, Shape shape, Peer peer) {
        return new OperationKind(code, function, shape, peer, false, false);
    }

    private static final OperationKind[] KINDS = {
        ALL_REDUCE,
        REDUCE,
        BROADCAST,
        ALL_GATHER,
        REDUCE_SCATTER,
        ALL_TO_ALL,
        GATHER,
        SCATTER,
        SEND,
        RECV,
        PUT_SIGNAL,
        SIGNAL,
        WAIT_SIGNAL,
        ALL_TO_ALLV,
        NONE,
    };

    /** Added to the code of a collective that is called with a configuration. */
    public static final int CONFIGURED = 32;

    /** The kind with a code, which may be that of a call with a configuration. */
    public static OperationKind of(int code) {
        return KINDS[code & CONFIGURED - 1];
    }

    /** The kind of a C function without a configuration; {@link #NONE} if there is no such kind. */
    public static OperationKind of(String function) {
        for (OperationKind kind : KINDS) {
            if (kind.function.equals(function)) {
                return kind;
            }
        }
        return NONE;
    }

    public static boolean isConfigured(int code) {
        return code >= CONFIGURED;
    }

    /** The name of the C function of a call. */
    public static String function(int code) {
        return isConfigured(code) ? of(code).function + "Config" : of(code).function;
    }

    /** Bits by code: set for a collective. A constant, which needs no load for each operation that is recorded. */
    private static final int COLLECTIVES = all().stream()
            .filter(OperationKind::isCollective)
            .mapToInt(kind -> 1 << kind.code)
            .sum();

    /** As {@link #isCollective()}, by a code, which may be that of a call with a configuration. */
    public static boolean isCollective(int code) {
        return (COLLECTIVES >>> (code & CONFIGURED - 1) & 1) != 0;
    }

    /** All kinds, by their codes. */
    public static List<OperationKind> all() {
        return List.of(KINDS);
    }

    /** True if the arguments of all ranks must agree. */
    private boolean hasSignature() {
        return isCollective && shape != Shape.BLOCKS;
    }

    public boolean hasElements() {
        return shape != Shape.NO_ELEMENTS;
    }

    /** True if the operation has a root or a peer. */
    public boolean hasPeer() {
        return peer != Peer.NONE;
    }

    /** A description for messages, such as "ncclReduce of 1024 float32 to rank 3". */
    public static String describe(int code, long count, int type, int peer) {
        OperationKind kind = of(code);
        String text = function(code);
        if (kind.hasElements()) {
            text += " of " + count + " " + ElementType.values().get(type);
        } else if (kind == WAIT_SIGNAL) {
            text += " of " + count + (count == 1 ? " signal" : " signals");
        }
        return switch (kind.peer) {
            case NONE -> text;
            case RECEIVES -> text + " to rank " + peer;
            case SENDS -> text + " from rank " + peer;
            case SIGNALS -> peer < 0 ? text : text + " from rank " + peer;
        };
    }

    /**
     * The arguments that must be equal on all ranks of a collective, such as "ncclReduce of 1024 float32 to rank 3,
     * SUM"; null for other operations.
     *
     * @param config the fields of the configuration that must be equal; null if the call has none
     */
    public static String signature(int code, long count, int type, int op, int peer, String config) {
        OperationKind kind = of(code);
        if (!kind.hasSignature()) {
            return null;
        }
        String text = describe(code, count, type, peer);
        return (kind.reduces ? text + ", " + Operator.nameOf(op) : text) + (config == null ? "" : ", " + config);
    }

    /**
     * Calls the C function.
     *
     * @param send the send buffer; for WAIT_SIGNAL the descriptors
     * @param recv the receive buffer; for PUT_SIGNAL the window
     * @param count the number of elements; for WAIT_SIGNAL the number of signals, for messages only
     * @param op the reduction; for PUT_SIGNAL and SIGNAL the index of the signal; for WAIT_SIGNAL the number of
     *     descriptors
     * @param peer the root or peer; for WAIT_SIGNAL for messages only
     * @param offset the offset of PUT_SIGNAL in bytes; for a configured operation the address of the configuration
     */
    public static int call(
            int code,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long offset,
            long communicator,
            long stream) {
        if (code == Code.ALL_REDUCE) {
            // Separate from the other operations: the compiler always inlines a small method, a large one not always.
            return nccl.ncclAllReduce(send, recv, count, type, op, communicator, stream);
        }
        return callOther(code, send, recv, count, type, op, peer, offset, communicator, stream);
    }

    private static int callOther(
            int code,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long offset,
            long communicator,
            long stream) {
        return switch (code) {
            case Code.REDUCE -> nccl.ncclReduce(send, recv, count, type, op, peer, communicator, stream);
            case Code.BROADCAST -> nccl.ncclBroadcast(send, recv, count, type, peer, communicator, stream);
            case Code.ALL_GATHER -> nccl.ncclAllGather(send, recv, count, type, communicator, stream);
            case Code.REDUCE_SCATTER -> nccl.ncclReduceScatter(send, recv, count, type, op, communicator, stream);
            case Code.ALL_TO_ALL -> nccl.ncclAlltoAll(send, recv, count, type, communicator, stream);
            case Code.GATHER -> nccl.ncclGather(send, recv, count, type, peer, communicator, stream);
            case Code.SCATTER -> nccl.ncclScatter(send, recv, count, type, peer, communicator, stream);
            case Code.SEND -> nccl.ncclSend(send, count, type, peer, communicator, stream);
            case Code.RECV -> nccl.ncclRecv(recv, count, type, peer, communicator, stream);
            case Code.PUT_SIGNAL ->
                nccl.ncclPutSignal(send, count, type, peer, recv, offset, op, 0, 0, communicator, stream);
            case Code.SIGNAL -> nccl.ncclSignal(peer, op, 0, 0, communicator, stream);
            case Code.WAIT_SIGNAL -> nccl.ncclWaitSignal(op, send, communicator, stream);
            default -> callConfigured(code, send, recv, count, type, op, peer, offset, communicator, stream);
        };
    }

    private static int callConfigured(
            int code,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long config,
            long comm,
            long stream) {
        return switch (code - CONFIGURED) {
            case Code.ALL_REDUCE -> nccl.ncclAllReduceConfig(send, recv, count, type, op, comm, stream, config);
            case Code.REDUCE -> nccl.ncclReduceConfig(send, recv, count, type, op, peer, comm, stream, config);
            case Code.BROADCAST -> nccl.ncclBroadcastConfig(send, recv, count, type, peer, comm, stream, config);
            case Code.ALL_GATHER -> nccl.ncclAllGatherConfig(send, recv, count, type, comm, stream, config);
            case Code.REDUCE_SCATTER -> nccl.ncclReduceScatterConfig(send, recv, count, type, op, comm, stream, config);
            case Code.ALL_TO_ALL -> nccl.ncclAlltoAllConfig(send, recv, count, type, comm, stream, config);
            case Code.GATHER -> nccl.ncclGatherConfig(send, recv, count, type, peer, comm, stream, config);
            case Code.SCATTER -> nccl.ncclScatterConfig(send, recv, count, type, peer, comm, stream, config);
            default -> throw new IllegalArgumentException("operation " + code);
        };
    }
}
