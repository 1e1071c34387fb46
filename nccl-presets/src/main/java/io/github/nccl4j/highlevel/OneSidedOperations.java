package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.memory.Bounds;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.OperationKind;
import java.nio.IntBuffer;

/** The operations of a communicator that other ranks do not call: puts and signals. For the communicator's thread. */
final class OneSidedOperations {
    private final CommunicatorCore core;
    private final OperationChecks checks;
    private final CommunicatorWindows windows;
    private final OperationSubmitter operations;

    /** True if the library has the functions. Cached, because a query takes longer than a call. */
    private final boolean provided;

    OneSidedOperations(
            CommunicatorCore core, OperationChecks checks, CommunicatorWindows windows, OperationSubmitter operations) {
        this.core = core;
        this.checks = checks;
        this.windows = windows;
        this.operations = operations;
        provided = core.library().provides(OperationKind.PUT_SIGNAL.function());
    }

    void putSignal(DeviceBuffer<?> elements, Window window, long offset, int peer, NativeStream stream) {
        require(OperationKind.PUT_SIGNAL);
        checks.peer("peer", peer);
        checks.buffer(elements);
        window.check(core);
        int size = elements.type.sizeInBytes();
        Bounds.check("offset", offset, elements.length, "elements in the window", window.sizeInBytes() / size);
        Window source = windows.symmetricWindowOf(elements);
        if (source == null) {
            throw new IllegalArgumentException(
                    "elements must be in a window of the communicator with COLL_SYMMETRIC, or NCCL can't put them: "
                            + elements + " at 0x" + Long.toHexString(elements.address));
        }
        long bytes = elements.length * size;
        if (peer == core.rank()) {
            OperationChecks.disjoint(elements.address, bytes, window.buffer().address + offset * size, bytes);
        }
        checks.stream(stream);
        // NCCL checks the address of 0 elements, too, and the address of a window's end is in no window.
        long address = bytes == 0 ? source.buffer().address : elements.address;
        operations.oneSided(
                OperationKind.PUT_SIGNAL,
                address,
                window.handle(),
                elements.length,
                elements.type.nativeCode(),
                0,
                peer,
                offset * size,
                stream,
                source,
                window,
                null);
    }

    void signal(int peer, NativeStream stream) {
        require(OperationKind.SIGNAL);
        checks.peer("peer", peer);
        checks.stream(stream);
        operations.oneSided(OperationKind.SIGNAL, 0, 0, 0, 0, 0, peer, 0, stream, null, null, null);
    }

    void waitSignal(NativeStream stream, SignalWait... waits) {
        require(OperationKind.WAIT_SIGNAL);
        if (waits.length == 0) {
            throw new IllegalArgumentException("waits must have at least 1 element: 0");
        }
        long count = 0;
        for (SignalWait wait : waits) {
            checks.peer("peer", wait.peer());
            requireZero("index", wait.index());
            requireZero("context", wait.context());
            count += wait.count();
        }
        checks.stream(stream);
        int peer = waits.length == 1 ? waits[0].peer() : -1;
        NativeMemory descriptors = descriptors(waits);
        operations.oneSided(
                OperationKind.WAIT_SIGNAL,
                descriptors.address(),
                0,
                count,
                0,
                waits.length,
                peer,
                0,
                stream,
                null,
                null,
                descriptors);
    }

    private static NativeMemory descriptors(SignalWait... waits) {
        NativeMemory memory = new NativeMemory(Math.multiplyExact(4 * Integer.BYTES, waits.length));
        IntBuffer words = memory.buffer().asIntBuffer();
        for (SignalWait wait : waits) {
            words.put(wait.count()).put(wait.peer()).put(wait.index()).put(wait.context());
        }
        return memory;
    }

    private void require(OperationKind kind) {
        if (!provided) {
            core.require(kind.function());
        }
    }

    private void requireZero(String what, int value) {
        if (value != 0) {
            throw new IllegalArgumentException(what + " must be 0 with " + core.library() + ": " + value);
        }
    }
}
