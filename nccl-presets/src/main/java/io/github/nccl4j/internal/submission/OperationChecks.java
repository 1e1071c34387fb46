package io.github.nccl4j.internal.submission;

import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.memory.Bounds;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationKind.Shape;
import io.github.nccl4j.internal.operation.Operator;

/**
 * Checks of the arguments of a communicator's operations, before NCCL is called. The methods of the hot path leave the
 * messages to other methods, so that they are small enough to be compiled into their callers.
 *
 * <p>For any thread: a communicator's state is checked elsewhere.
 */
public final class OperationChecks {
    private final CommunicatorCore core;
    private final NativeDevice device;
    private final CommunicatorWindows windows;

    /** The code of {@link #device}, for checks of streams and buffers. */
    private final int deviceCode;

    /** The code of the last data type that the library supports. */
    private final int lastType;

    public OperationChecks(CommunicatorCore core, CommunicatorWindows windows) {
        this.core = core;
        this.windows = windows;
        device = core.device();
        deviceCode = device.code();
        lastType = core.library().version().isAtLeast(DataType.FLOAT8_E4M3.since())
                ? DataType.values().length - 1
                : DataType.FLOAT8_E4M3.code() - 1;
    }

    /* Whole operations. */

    /**
     * Checks the lengths, the places, the operator and the root of a collective on buffers. {@link #wrong} and
     * {@link #each} check the rest.
     *
     * @param root the root; ignored if the kind has none
     * @return the count for the C function
     */
    public long collective(OperationKind kind, NativeBuffer send, NativeBuffer recv, Operator op, int root) {
        if (kind.hasPeer()) {
            root(root);
        }
        long count;
        if (kind.shape() == Shape.ELEMENTWISE) {
            count = send.length;
            if (recv.length != count) {
                throw unequal("recv.length()", recv.length, "send.length()", count);
            }
            apartOrSame(send, recv);
        } else if (kind.shape() == Shape.EXCHANGED) {
            count = exchanged(send, recv);
        } else if (kind.shape() == Shape.GATHERED) {
            count = send.length;
            if (!kind.hasPeer() || core.rank() == root) {
                timesSize("recv.length()", recv.length, "send.length()", count);
                disjointOrPart(send, recv, core.rank());
            }
        } else {
            count = recv.length;
            if (!kind.hasPeer() || core.rank() == root) {
                timesSize("send.length()", send.length, "recv.length()", count);
                disjointOrPart(recv, send, core.rank());
            }
        }
        if (kind.reduces() && op.isScaled()) {
            operator(kind, op, send.address, recv.address, send.format.type());
        }
        return count;
    }

    private long exchanged(NativeBuffer send, NativeBuffer recv) {
        equal("recv.length()", recv.length, "send.length()", send.length);
        if (send.length % core.size() != 0) {
            throw new IllegalArgumentException(
                    "send.length() must be a multiple of size(): " + send.length + ", size " + core.size());
        }
        disjoint(send, recv);
        return send.length / core.size();
    }

    /** Checks all arguments of an operation on plain addresses, except the peer of a transfer. */
    public void addresses(
            OperationKind kind,
            long send,
            long recv,
            long count,
            DataType type,
            Operator op,
            int root,
            NativeStream stream) {
        if (kind.shape() == Shape.ELEMENTWISE) {
            elements(count, type, 1);
            addresses(send, count, recv, count, type);
            if (send != recv) {
                disjoint(send, count * type.size(), recv, count * type.size());
            }
        } else {
            boolean gathers = kind.shape() == Shape.GATHERED;
            int size = core.size();
            elements(count, type, size);
            addresses(send, gathers ? count : count * size, recv, gathers ? count * size : count, type);
            long bytes = count * type.size();
            long part = gathers ? send : recv;
            long whole = gathers ? recv : send;
            if (part != whole + core.rank() * bytes) {
                disjoint(part, bytes, whole, size * bytes);
            }
        }
        if (kind.reduces() && op.isScaled()) {
            operator(kind, op, send, recv, type);
        }
        if (kind.hasPeer()) {
            root(root);
        }
        stream(stream);
    }

    /** Checks all arguments of a transfer of the elements at a plain address. */
    public void address(long address, long count, DataType type, int peer, NativeStream stream) {
        elements(count, type, 1);
        address("address", address, type, count);
        transferPeer(peer);
        stream(stream);
    }

    /* Numbers. */

    private static IllegalArgumentException unequal(String what, long value, String other, long otherValue) {
        return new IllegalArgumentException(what + " must be " + other + ": " + value + " != " + otherValue);
    }

    public static void equal(String what, long value, String other, long otherValue) {
        if (value != otherValue) {
            throw unequal(what, value, other, otherValue);
        }
    }

    private void timesSize(String what, long value, String part, long partValue) {
        // partValue * size may overflow.
        int size = core.size();
        if (value / size != partValue || value % size != 0) {
            throw new IllegalArgumentException(
                    what + " must be size() * " + part + ": " + value + " != " + size + " * " + partValue);
        }
    }

    public void root(int root) {
        peer("root", root);
    }

    public void peer(String what, int peer) {
        core.requireRank(what, peer);
    }

    /** Requires that the root of an operation without a buffer of the root is another rank. */
    public void otherRoot(int root, String buffer) {
        root(root);
        if (root == core.rank()) {
            throw new IllegalArgumentException(
                    "the root needs a buffer '" + buffer + "': root " + root + ", rank " + core.rank());
        }
    }

    public void transferPeer(int peer) {
        peer("peer", peer);
        if (peer == core.rank() && Batch.current() == null) {
            throw new IllegalStateException("a rank can send to itself and receive from itself in a group only: peer "
                    + peer + ", rank " + core.rank());
        }
    }

    /* Buffers and streams. */

    public void each(NativeBuffer send, NativeBuffer recv, NativeStream stream) {
        if (wrong(send, recv, stream) < 0) {
            refuse(send, recv, stream);
        }
    }

    /** Negative if an argument of an operation may be wrong. One sign for all arguments needs only one branch. */
    public int wrong(NativeBuffer send, NativeBuffer recv, NativeStream stream) {
        int unequal = send.kind ^ recv.kind | stream.deviceCode ^ deviceCode;
        return wrong(send) | -unequal | recv.state() | stream.state();
    }

    /** Throws if an argument is wrong, after {@link #wrong} was negative. */
    public void refuse(NativeBuffer send, NativeBuffer recv, NativeStream stream) {
        oneType(send, recv);
        refuse(stream);
    }

    public void each(NativeBuffer buffer, NativeStream stream) {
        if ((wrong(buffer) | wrong(stream)) < 0) {
            refuse(buffer);
            refuse(stream);
        }
    }

    public void buffer(NativeBuffer buffer) {
        if (wrong(buffer) < 0) {
            refuse(buffer);
        }
    }

    /** Negative if a buffer is closed, on another device, or of a type that the library does not support. */
    private int wrong(NativeBuffer buffer) {
        return lastType - typeCode(buffer) | buffer.state();
    }

    /** The code of the element type if the buffer is on this device; otherwise larger than any code. */
    public int typeCode(NativeBuffer buffer) {
        return buffer.kind ^ deviceCode;
    }

    private void oneType(NativeBuffer send, NativeBuffer recv) {
        if (send.format != recv.format) {
            throw new IllegalArgumentException(
                    "send and recv must have the same element type: " + send.format + ", " + recv.format);
        }
        refuse(send);
        openAndHere(recv);
    }

    private void refuse(NativeBuffer buffer) {
        openAndHere(buffer);
        type(buffer.typeCode);
    }

    private void openAndHere(NativeBuffer buffer) {
        buffer.checkOpen();
        if (buffer.device != device) {
            throw new IllegalArgumentException(
                    "buffer must be on the communicator's device: " + buffer + ", the communicator is on " + device);
        }
    }

    public void type(int type) {
        if (type > lastType) {
            DataType unknown = DataType.values()[type];
            throw new NcclLibraryException(
                    unknown + " needs NCCL " + unknown.since() + ", loaded is " + core.library());
        }
    }

    public void stream(NativeStream stream) {
        if (wrong(stream) < 0) {
            refuse(stream);
        }
    }

    /** Negative if a stream is closed or on another device. */
    private int wrong(NativeStream stream) {
        return -(stream.deviceCode ^ deviceCode) | stream.state();
    }

    private void refuse(NativeStream stream) {
        stream.checkOpen();
        if (stream.device != device) {
            throw new IllegalArgumentException(
                    "stream must be on the communicator's device: " + stream + ", the communicator is on " + device);
        }
    }

    /** Requires that a thread can wait for the operations of a stream. */
    public void workOf(NativeStream stream) {
        stream(stream);
        if (Batch.current() != null) {
            // The batch holds the gate for this thread: entering would succeed, and leaving would release the batch's
            // pass.
            throw new IllegalStateException(
                    "the operations of the open group of this thread are in no stream yet: launch"
                            + " the group, then ask " + core + " for its work");
        }
        if (NativeGraph.capturing(stream) != null) {
            throw new IllegalStateException("a captured stream does no work: launch the graph, then ask " + core
                    + " for the work in " + stream);
        }
    }

    /* Operators. */

    public void operator(Operator op, DataType type) {
        if (!op.isBuiltIn()) {
            created(op, type);
        }
    }

    /**
     * Includes the check for NCCL's fault of averages. {@link CommunicatorWindows#checkForFaults} has the other faults.
     */
    private void operator(OperationKind kind, Operator op, long send, long recv, DataType type) {
        if (!op.isBuiltIn()) {
            created(op, type);
        } else if (kind == OperationKind.ALL_REDUCE && op == Operator.AVG) {
            windows.checkAverage(send, recv, type);
        }
    }

    private void created(Operator op, DataType type) {
        ((CreatedOperator) op).check(core, type);
    }

    /* Places. */

    /** Requires two disjoint buffers of one type. */
    public void separate(NativeBuffer send, NativeBuffer recv) {
        oneType(send, recv);
        disjoint(send, recv);
    }

    public static void disjoint(NativeBuffer a, NativeBuffer b) {
        if (overlap(a.address, a.bytes, b.address, b.bytes)) {
            // A closed buffer may have had the address that another buffer has now.
            a.checkOpen();
            b.checkOpen();
            throw overlapping(a.address, a.bytes, b.address, b.bytes);
        }
    }

    /** Requires that two buffers of equal size are disjoint or the same. */
    private static void apartOrSame(NativeBuffer a, NativeBuffer b) {
        long distance = a.address - b.address;
        if (distance != 0 && distance < a.bytes && -distance < a.bytes) {
            disjoint(a, b);
        }
    }

    /** Requires that the part is the rank's block of the whole, or disjoint from it. */
    private static void disjointOrPart(NativeBuffer part, NativeBuffer whole, int rank) {
        if (part.address != whole.address + rank * part.bytes) {
            disjoint(part, whole);
        }
    }

    public static void disjoint(long a, long aBytes, long b, long bBytes) {
        if (overlap(a, aBytes, b, bBytes)) {
            throw overlapping(a, aBytes, b, bBytes);
        }
    }

    private static boolean overlap(long a, long aBytes, long b, long bBytes) {
        return a < b + bBytes && b < a + aBytes;
    }

    private static IllegalArgumentException overlapping(long a, long aBytes, long b, long bBytes) {
        return new IllegalArgumentException("buffers overlap without being in place: " + Bounds.range(a, aBytes)
                + " and " + Bounds.range(b, bBytes));
    }

    /* Plain addresses. */

    private void elements(long count, DataType type, int times) {
        type(type.code());
        // Fewer than 2^40 elements of at most 8 bytes at fewer than 2^20 ranks are less than 2^63 bytes.
        if (count >>> 40 != 0 || times >= 1 << 20) {
            bytes(count, type, times);
        }
    }

    private static void bytes(long count, DataType type, int times) {
        if (count < 0) {
            throw new IllegalArgumentException("count must be >= 0: " + count);
        }
        if (count > Long.MAX_VALUE / type.size() / times) {
            throw new IllegalArgumentException("count * size of an element * ranks must be <= " + Long.MAX_VALUE + ": "
                    + count + " * " + type.size() + " * " + times);
        }
    }

    /**
     * Checks both addresses at once. A branch for each check would make the operations on addresses larger than what C2
     * inlines, which costs 1.3 ns a call.
     */
    private static void addresses(long send, long sendCount, long recv, long recvCount, DataType type) {
        int size = type.size();
        boolean isLow = Math.min(send, recv) < Bounds.FIRST_ADDRESS;
        if (isLow || ((send | recv) & size - 1) != 0 || (send + sendCount * size | recv + recvCount * size) < 0) {
            realAddress("send", send, type, sendCount);
            realAddress("recv", recv, type, recvCount);
        }
    }

    private static void address(String what, long address, DataType type, long count) {
        // Sizes are powers of two. The end of a range that exceeds the address space is negative.
        if (address < Bounds.FIRST_ADDRESS || (address & type.size() - 1) != 0 || address + count * type.size() < 0) {
            realAddress(what, address, type, count);
        }
    }

    private static void realAddress(String what, long address, DataType type, long count) {
        if (address == 0 && count > 0) {
            throw new IllegalArgumentException(what + " must not be 0 with " + count + " elements");
        }
        if (address % type.size() != 0) {
            throw new IllegalArgumentException(what + " must be a multiple of the size of " + type + ": 0x"
                    + Long.toHexString(address) + " % " + type.size() + " != 0");
        }
        Bounds.checkAddress(what, address, count * type.size());
    }
}
