package io.github.nccl4j.internal.operation;

/**
 * An operation whose arguments have been checked: recorded, compared, called and named in messages by this record. The
 * plain path passes the same numbers without one. The meaning of each is that of {@link OperationKind#call}.
 *
 * @param code the code of the {@link OperationKind}, with {@link OperationKind#CONFIGURED} if the call has a configuration
 * @param op the operator; the index of the signal; for WAIT_SIGNAL the number of descriptors
 * @param peer the root or the other rank
 * @param extra the offset of PUT_SIGNAL in bytes; for a call with a configuration the address of the configuration
 * @param stream the native stream
 */
public record Operation(int code, Elements elements, int op, int peer, long extra, long stream) {
    /**
     * The elements of an operation.
     *
     * @param send the send buffer; the descriptors of WAIT_SIGNAL
     * @param recv the receive buffer; the window of PUT_SIGNAL
     * @param count as the C function counts them
     * @param type the code of their type
     */
    public record Elements(long send, long recv, long count, int type) {
        /** Those of an operation without elements. */
        public static final Elements NONE = new Elements(0, 0, 0, 0);
    }

    /** An operation without a configuration and an offset. */
    public static Operation of(OperationKind kind, Elements elements, Operator op, int peer, long stream) {
        return new Operation(kind.code(), elements, op == null ? 0 : op.code, peer, 0, stream);
    }

    /** The same operation with a configuration, whose address is that of the native struct. */
    public Operation configured(long struct) {
        return new Operation(code | OperationKind.CONFIGURED, elements, op, peer, struct, stream);
    }

    public boolean usesDefaultStream() {
        return stream == 0;
    }

    public boolean isTransfer(OperationKind direction, int otherRank) {
        return code == direction.code() && peer == otherRank;
    }

    /** True if this is a send or a receive, and the other rank is the given one. */
    public boolean isTransferWith(int rank) {
        return isTransfer(OperationKind.SEND, rank) || isTransfer(OperationKind.RECV, rank);
    }

    /** True if a send and a receive transfer the same number of elements of one type. */
    public boolean matches(Operation other) {
        return elements.count == other.elements.count && elements.type == other.elements.type;
    }

    /** The name of the C function. */
    public String function() {
        return OperationKind.function(code);
    }

    /** A description for messages, such as "ncclReduce of 1024 float32 to rank 3". */
    public String describe() {
        return OperationKind.describe(code, elements.count, elements.type, peer);
    }

    /** As {@link OperationKind#signature}. */
    public String signature(String config) {
        return OperationKind.signature(code, elements.count, elements.type, op, peer, config);
    }

    /** Calls the C function. */
    public int call(long handle) {
        return OperationKind.call(
                code, elements.send, elements.recv, elements.count, elements.type, op, peer, extra, handle, stream);
    }
}
