package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * The operations that transfer data, in one form for all, so that a group can store them and a message can name them.
 * Numbers instead of an enum, since the compiler resolves a switch over a constant number.
 */
final class Operations {
    static final int ALL_REDUCE = 0;
    static final int REDUCE = 1;
    static final int BROADCAST = 2;
    static final int ALL_GATHER = 3;
    static final int REDUCE_SCATTER = 4;
    static final int ALL_TO_ALL = 5;
    static final int GATHER = 6;
    static final int SCATTER = 7;
    static final int SEND = 8;
    static final int RECV = 9;
    static final int PUT_SIGNAL = 10;
    static final int SIGNAL = 11;
    static final int WAIT_SIGNAL = 12;
    /** Not callable by {@link #call}, since the libraries have different forms. */
    static final int ALL_TO_ALLV = 13;
    /** No operation, before the first one of a communicator. */
    static final int NONE = 14;
    /** The first of the eight collectives with a configuration, in the order of the operations from 0. */
    private static final int FIRST_CONFIGURED = 15;

    private static final String[] NAMES = {
        "ncclAllReduce",
        "ncclReduce",
        "ncclBroadcast",
        "ncclAllGather",
        "ncclReduceScatter",
        "ncclAlltoAll",
        "ncclGather",
        "ncclScatter",
        "ncclSend",
        "ncclRecv",
        "ncclPutSignal",
        "ncclSignal",
        "ncclWaitSignal",
        "ncclAlltoAllv",
        "no operation",
        "ncclAllReduceConfig",
        "ncclReduceConfig",
        "ncclBroadcastConfig",
        "ncclAllGatherConfig",
        "ncclReduceScatterConfig",
        "ncclAlltoAllConfig",
        "ncclGatherConfig",
        "ncclScatterConfig",
    };

    private Operations() {}

    /** The name of the C function. */
    static String name(int operation) {
        return NAMES[operation];
    }

    /** The form of a collective with a configuration. */
    static int configured(int collective) {
        return collective + FIRST_CONFIGURED;
    }

    static boolean isConfigured(int operation) {
        return operation >= FIRST_CONFIGURED;
    }

    /** The form of an operation without a configuration. */
    private static int plain(int operation) {
        return isConfigured(operation) ? operation - FIRST_CONFIGURED : operation;
    }

    static boolean hasElements(int operation) {
        return operation != SIGNAL && operation != WAIT_SIGNAL && operation != NONE;
    }

    static boolean reduces(int operation) {
        int plain = plain(operation);
        return plain == ALL_REDUCE || plain == REDUCE || plain == REDUCE_SCATTER;
    }

    /** True if the operation has a root or a peer. */
    static boolean hasPeer(int operation) {
        return switch (plain(operation)) {
            case REDUCE, BROADCAST, GATHER, SCATTER, SEND, RECV, PUT_SIGNAL, SIGNAL, WAIT_SIGNAL -> true;
            default -> false;
        };
    }

    /** A description for messages, such as "ncclReduce of 1024 float32 to rank 3". */
    static String describe(int operation, long count, int type, int peer) {
        String text = name(operation);
        if (operation == NONE) {
            return text;
        }
        if (operation == SIGNAL) {
            return text + " to rank " + peer;
        }
        if (operation == WAIT_SIGNAL) {
            return text + " of " + count + (count == 1 ? " signal" : " signals")
                    + (peer < 0 ? "" : " from rank " + peer);
        }
        text += " of " + count + " " + ElementType.values().get(type);
        return switch (plain(operation)) {
            case REDUCE, GATHER, SEND, PUT_SIGNAL -> text + " to rank " + peer;
            case BROADCAST, SCATTER, RECV -> text + " from rank " + peer;
            default -> text;
        };
    }

    /**
     * The arguments that must be equal on all ranks of a collective, such as "ncclReduce of 1024 float32 to rank 3,
     * SUM"; null for other operations.
     *
     * @param config null if the call has no configuration
     */
    static String signature(int operation, long count, int type, int op, int peer, CollectiveConfig config) {
        if (plain(operation) > SCATTER) {
            return null;
        }
        String text = describe(operation, count, type, peer);
        return (reduces(operation) ? text + ", " + ReduceOp.name(op) : text)
                + (config == null ? "" : ", " + config.signature());
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
    static int call(
            int operation,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long offset,
            long communicator,
            long stream) {
        if (operation == ALL_REDUCE) {
            // Separate from the other operations: the compiler always inlines a small method, a large one not always.
            return nccl.ncclAllReduce(send, recv, count, type, op, communicator, stream);
        }
        return callOther(operation, send, recv, count, type, op, peer, offset, communicator, stream);
    }

    private static int callOther(
            int operation,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long offset,
            long communicator,
            long stream) {
        return switch (operation) {
            case REDUCE -> nccl.ncclReduce(send, recv, count, type, op, peer, communicator, stream);
            case BROADCAST -> nccl.ncclBroadcast(send, recv, count, type, peer, communicator, stream);
            case ALL_GATHER -> nccl.ncclAllGather(send, recv, count, type, communicator, stream);
            case REDUCE_SCATTER -> nccl.ncclReduceScatter(send, recv, count, type, op, communicator, stream);
            case ALL_TO_ALL -> nccl.ncclAlltoAll(send, recv, count, type, communicator, stream);
            case GATHER -> nccl.ncclGather(send, recv, count, type, peer, communicator, stream);
            case SCATTER -> nccl.ncclScatter(send, recv, count, type, peer, communicator, stream);
            case SEND -> nccl.ncclSend(send, count, type, peer, communicator, stream);
            case RECV -> nccl.ncclRecv(recv, count, type, peer, communicator, stream);
            case PUT_SIGNAL ->
                nccl.ncclPutSignal(send, count, type, peer, recv, offset, op, 0, 0, communicator, stream);
            case SIGNAL -> nccl.ncclSignal(peer, op, 0, 0, communicator, stream);
            case WAIT_SIGNAL -> nccl.ncclWaitSignal(op, send, communicator, stream);
            default -> callConfigured(operation, send, recv, count, type, op, peer, offset, communicator, stream);
        };
    }

    private static int callConfigured(
            int operation,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long config,
            long comm,
            long stream) {
        return switch (operation - FIRST_CONFIGURED) {
            case ALL_REDUCE -> nccl.ncclAllReduceConfig(send, recv, count, type, op, comm, stream, config);
            case REDUCE -> nccl.ncclReduceConfig(send, recv, count, type, op, peer, comm, stream, config);
            case BROADCAST -> nccl.ncclBroadcastConfig(send, recv, count, type, peer, comm, stream, config);
            case ALL_GATHER -> nccl.ncclAllGatherConfig(send, recv, count, type, comm, stream, config);
            case REDUCE_SCATTER -> nccl.ncclReduceScatterConfig(send, recv, count, type, op, comm, stream, config);
            case ALL_TO_ALL -> nccl.ncclAlltoAllConfig(send, recv, count, type, comm, stream, config);
            case GATHER -> nccl.ncclGatherConfig(send, recv, count, type, peer, comm, stream, config);
            case SCATTER -> nccl.ncclScatterConfig(send, recv, count, type, peer, comm, stream, config);
            default -> throw new IllegalArgumentException("operation " + operation);
        };
    }
}
