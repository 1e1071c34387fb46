package io.github.nccl4j.internal.submission;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.binding.GroupedCalls;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.operation.Operator;
import io.github.nccl4j.internal.threads.Gate;

/**
 * Makes the calls at once, in a native group of their own. No other call can be made in between, so none must be
 * undone. Costs no more than the calls themselves. Each communicator has one instance; its user holds the gate.
 */
public final class DirectCallGroup extends CallGroup {
    private final Gate gate;
    private final OperationLog log;
    private final CommunicatorCore core;

    private Gate.Pass pass;
    /** The pinned buffers; null for none. */
    private NativeBuffer first;

    private NativeBuffer second;
    private int group;
    private int calls;
    private int result;

    DirectCallGroup(CommunicatorCore core, Gate gate, OperationLog log) {
        this.core = core;
        this.gate = gate;
        this.log = log;
    }

    /** Enters the gate; {@link #close} leaves it. */
    DirectCallGroup begin() {
        pass = gate.enter();
        calls = 0;
        result = nccl.ncclSuccess;
        return this;
    }

    /** As {@link #begin()}, and pins the buffers until the close: the host engine uses their memory within the calls. */
    DirectCallGroup begin(NativeBuffer one, NativeBuffer other) {
        begin();
        try {
            if (other == null) {
                one.pin();
            } else {
                one.pinBoth(other);
            }
        } catch (IllegalStateException closed) {
            close();
            throw closed;
        }
        first = one;
        second = other;
        return this;
    }

    /**
     * Nothing to pin: NCCL reads its arguments before the call returns, and the caller holds the buffer until then. On host
     * memory, both buffers are pinned from the beginning, so that no call of a group lacks the others.
     */
    @Override
    void pin(NativeBuffer buffer) {}

    @Override
    void pin(Operator op) {}

    @Override
    void add(Operation operation, NativeStream stream) {
        if (calls == 0) {
            Status.check(nccl.ncclGroupStart(), "ncclGroupStart");
            group = log.beginGroup();
        } else if (hasFailed()) {
            return;
        }
        calls++;
        log.record(operation, pass, group);
        result = operation.call(core.handle());
    }

    /** As two calls of add, and launched at once. */
    @Override
    void exchange(NativeBuffer send, int to, NativeBuffer recv, int from, NativeStream stream) {
        if (send.length == 0 || recv.length == 0) {
            super.exchange(send, to, recv, from, stream);
            return;
        }
        int inGroup = log.beginGroup();
        long handle = stream.handle;
        log.record(pass.next(), OperationKind.SEND.code(), send.length, send.typeCode, to, 0, inGroup, handle);
        pass.count();
        log.record(pass.next(), OperationKind.RECV.code(), recv.length, recv.typeCode, from, 0, inGroup, handle);
        pass.count();
        long outcome = GroupedCalls.sendAndReceive(
                send.address,
                send.length,
                send.typeCode,
                to,
                recv.address,
                recv.length,
                recv.typeCode,
                from,
                core.handle(),
                handle);
        if (GroupedCalls.result(outcome) != nccl.ncclSuccess) {
            settleExchange(outcome);
        }
    }

    private void settleExchange(long outcome) {
        result = GroupedCalls.result(outcome);
        switch (GroupedCalls.failedCall(outcome)) {
            case GroupedCalls.START -> Status.check(result, "ncclGroupStart");
            case GroupedCalls.SEND -> settleCall(log.lastButOne(), 2);
            case GroupedCalls.RECV -> settleCall(log.last(), 2);
            default -> settleEnd(result, 2);
        }
    }

    private boolean hasFailed() {
        return result != nccl.ncclSuccess && result != nccl.ncclInProgress;
    }

    @Override
    void launch() {
        if (calls == 0) {
            return;
        }
        int count = calls;
        calls = 0;
        // Always ends the native group, or this thread would stay in it; after an error NCCL drops the calls.
        int end = nccl.ncclGroupEnd();
        if (end != nccl.ncclSuccess || hasFailed()) {
            settle(end, count);
        }
    }

    private void settle(int end, int count) {
        if (hasFailed()) {
            settleCall(log.last(), count);
        } else {
            settleEnd(end, count);
        }
    }

    private void settleCall(OperationLog.Entry call, int count) {
        core.calls().settle(result, call.function(), call.call() + " in " + group(count));
    }

    private void settleEnd(int end, int count) {
        core.calls().settle(end, "ncclGroupEnd", "ncclGroupEnd of " + group(count));
    }

    private static String group(int count) {
        return "a group of " + count + (count == 1 ? " operation" : " operations");
    }

    @Override
    public void close() {
        try {
            if (calls > 0) {
                nccl.ncclGroupEnd();
            }
        } finally {
            NativeBuffer one = first;
            NativeBuffer other = second;
            first = null;
            second = null;
            // Another thread may use this group now. Freeing a buffer may call NCCL, so it comes last.
            pass.leave();
            if (other != null) {
                one.unpinBoth(other);
            } else if (one != null) {
                one.unpin();
            }
        }
    }
}
