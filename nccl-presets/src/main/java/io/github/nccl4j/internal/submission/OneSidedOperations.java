package io.github.nccl4j.internal.submission;

import io.github.nccl4j.highlevel.SignalWait;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.memory.Bounds;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.operation.Operation.Elements;
import io.github.nccl4j.internal.operation.OperationKind;
import java.nio.IntBuffer;

/** The operations of a communicator that other ranks do not call: puts and signals. For the communicator's thread. */
public final class OneSidedOperations {
    private final CommunicatorCore core;
    private final OperationChecks checks;
    private final CommunicatorWindows windows;
    private final OperationSubmitter operations;

    /** True if the library has the functions. Cached, because a query takes longer than a call. */
    private final boolean provided;

    public OneSidedOperations(
            CommunicatorCore core, OperationChecks checks, CommunicatorWindows windows, OperationSubmitter operations) {
        this.core = core;
        this.checks = checks;
        this.windows = windows;
        this.operations = operations;
        provided = core.library().provides(OperationKind.PUT_SIGNAL.function());
    }

    public void putSignal(NativeBuffer elements, NativeWindow window, long offset, int peer, NativeStream stream) {
        require(OperationKind.PUT_SIGNAL);
        checks.peer("peer", peer);
        checks.buffer(elements);
        window.check(core);
        int size = elements.format.size();
        Bounds.check("offset", offset, elements.length, "elements in the window", window.bytes() / size);
        NativeWindow source = windows.symmetricWindowOf(elements);
        if (source == null) {
            throw new IllegalArgumentException(
                    "elements must be in a window of the communicator with COLL_SYMMETRIC, or NCCL can't put them: "
                            + elements + " at 0x" + Long.toHexString(elements.address));
        }
        long bytes = elements.length * size;
        if (peer == core.rank()) {
            OperationChecks.disjoint(elements.address, bytes, window.address() + offset * size, bytes);
        }
        checks.stream(stream);
        operations.put(elements, source, window, offset * size, peer, stream);
    }

    public void signal(int peer, NativeStream stream) {
        require(OperationKind.SIGNAL);
        checks.peer("peer", peer);
        checks.stream(stream);
        operations.signal(peer, stream);
    }

    public void waitSignal(NativeStream stream, SignalWait... waits) {
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
        Elements signals = new Elements(descriptors.address(), 0, count, 0);
        Operation wait = new Operation(OperationKind.Code.WAIT_SIGNAL, signals, waits.length, peer, 0, stream.handle);
        boolean taken = false;
        try {
            operations.recorded(wait, stream, null, null, null);
            Batch batch = Batch.currentFor(core);
            if (batch != null) {
                batch.take(descriptors);
                taken = true;
            }
        } finally {
            if (!taken) {
                descriptors.close();
            }
        }
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
