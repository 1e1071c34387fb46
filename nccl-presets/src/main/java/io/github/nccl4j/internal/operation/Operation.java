package io.github.nccl4j.internal.operation;

import io.github.nccl4j.internal.threads.Gate;

/**
 * Description of one operation whose arguments have been checked: recorded, compared, called and named in messages by
 * this class. Reused by groups, which have one for each of their operations. Numbers only, so that filling it needs no
 * barrier of the garbage collector.
 *
 * <p>For the thread that holds the gates of the communicators.
 */
public final class Operation {
    /** The code of a call with results, which a {@link Deferred} describes. */
    private static final int DEFERRED = -1;

    /** The code of the {@link OperationKind}, with {@link OperationKind#CONFIGURED} if the call has a configuration. */
    private int code;

    /** The index of the communicator in its group. */
    private int communicator;

    /** The send buffer; the descriptors of WAIT_SIGNAL; for a call with results its index in the group. */
    private long send;

    /** The receive buffer; the window of PUT_SIGNAL. */
    private long recv;

    private long count;
    private int type;

    /** The operator; the index of the signal; for WAIT_SIGNAL the number of descriptors. */
    private int op;

    /** The root or the other rank. */
    private int peer;

    /** The offset of PUT_SIGNAL in bytes; for a call with a configuration the address of the configuration. */
    private long extra;

    private long stream;

    /**
     * Sets everything but the communicator, and returns this. The meaning of each argument is that of
     * {@link OperationKind#call}.
     */
    public Operation set(
            int code, long send, long recv, long count, int type, int op, int peer, long extra, long stream) {
        this.code = code;
        this.send = send;
        this.recv = recv;
        this.count = count;
        this.type = type;
        this.op = op;
        this.peer = peer;
        this.extra = extra;
        this.stream = stream;
        return this;
    }

    /** Adds a configuration, whose address is that of the native struct. */
    public void configure(long struct) {
        code |= OperationKind.CONFIGURED;
        extra = struct;
    }

    /** Sets everything but the communicator to that of another operation. */
    public void set(Operation other) {
        set(
                other.code,
                other.send,
                other.recv,
                other.count,
                other.type,
                other.op,
                other.peer,
                other.extra,
                other.stream);
    }

    /** Makes this the place of a call with results. */
    public void setDeferred(int index) {
        code = DEFERRED;
        send = index;
        stream = 0;
    }

    public boolean isDeferred() {
        return code == DEFERRED;
    }

    public int deferredIndex() {
        return (int) send;
    }

    public int communicator() {
        return communicator;
    }

    public void setCommunicator(int index) {
        communicator = index;
    }

    public boolean isConfigured() {
        return OperationKind.isConfigured(code);
    }

    /** The address of the configuration of a call that has one. */
    public long config() {
        return extra;
    }

    /** The native stream. */
    public long stream() {
        return stream;
    }

    public boolean usesDefaultStream() {
        return stream == 0;
    }

    public int code() {
        return code;
    }

    public long send() {
        return send;
    }

    public long recv() {
        return recv;
    }

    public long count() {
        return count;
    }

    public int type() {
        return type;
    }

    /** True if this is a send or a receive, and the other rank is the given one. */
    public boolean isTransferWith(int rank) {
        return (code == OperationKind.Code.SEND || code == OperationKind.Code.RECV) && peer == rank;
    }

    public boolean isTransfer(OperationKind direction, int otherRank) {
        return code == direction.code() && peer == otherRank;
    }

    /** True if a send and a receive transfer the same number of elements of one type. */
    public boolean matches(Operation other) {
        return count == other.count && type == other.type;
    }

    /** The name of the C function. */
    public String function() {
        return OperationKind.function(code);
    }

    /** A description for messages, such as "ncclReduce of 1024 float32 to rank 3". */
    public String describe() {
        return OperationKind.describe(code, count, type, peer);
    }

    /** As {@link OperationKind#signature}. */
    public String signature(String config) {
        return OperationKind.signature(code, count, type, op, peer, config);
    }

    /** Records and counts the operation. The caller holds the pass. */
    public void record(OperationLog log, Gate.Pass pass, int group) {
        log.record(pass.next(), code, count, type, peer, op, group, stream);
        pass.count();
    }

    /** Calls the C function. */
    public int call(long handle) {
        return OperationKind.call(code, send, recv, count, type, op, peer, extra, handle, stream);
    }
}
