package io.github.nccl4j.internal.submission;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.config.FaultyAlgorithm;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.diagnostics.Jfr;
import io.github.nccl4j.internal.diagnostics.JfrEvents;
import io.github.nccl4j.internal.failure.BlockingCall;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.operation.Operator;
import io.github.nccl4j.internal.operation.RegistrationFaults;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.SlowPath;
import io.github.nccl4j.internal.threads.VirtualThreads;
import java.lang.ref.Reference;

/**
 * Passes all operations of a communicator to NCCL, after the checks. On the plain path, NCCL is called at once. With an
 * open group, the operation is added to the group. In a capture, and while calls are compared or observed, the buffers
 * are held during the call.
 *
 * <p>The plain path passes numbers; the other paths pass an {@link Operation}. For the communicator's thread; the gate
 * refuses other threads.
 */
public final class OperationSubmitter {
    private static final int SPECIAL = -1;

    private final CommunicatorCore core;
    private final Gate gate;
    private final OperationChecks checks;
    private final CommunicatorWindows windows;

    /** Written by the holder of the gate's pass. */
    private final OperationLog log;

    /** The calls that form one operation, on the plain path. */
    private final DirectCallGroup direct;

    /** True if collective calls are compared across ranks. */
    private final boolean compared;

    /**
     * {@link #SPECIAL} if operations of this communicator can't take the plain path: if calls are compared, and with
     * windows on which some operations of NCCL are faulty; else 0. Not volatile: one thread at a time uses the
     * communicator.
     */
    private int special;

    /**
     * True on host memory, which the call itself reads: the buffers are pinned during the call, and a virtual thread
     * can't take the plain path, because in the default stream the host engine waits for the other ranks within the call.
     */
    private final boolean onHost;

    /** The configuration that sets nothing. */
    private final CallConfig noConfig;

    /** True if calls must exclude a {@link FaultyAlgorithm}. */
    private final boolean excludes;

    /** Bits by code of a collective: set if the library is known to have its function with a configuration. */
    private int configurable;

    public OperationSubmitter(
            CommunicatorCore core, OperationChecks checks, CommunicatorWindows windows, CallConfig noConfig) {
        this.core = core;
        this.noConfig = noConfig;
        this.checks = checks;
        this.windows = windows;
        log = core.operationLog();
        compared = core.settings().check() != null;
        gate = core.gate();
        direct = new DirectCallGroup(core, gate, log);
        onHost = core.isOnHost();
        special = compared ? SPECIAL : 0;
        windows.onFaults(() -> special = SPECIAL);
        excludes = FaultyAlgorithm.mustBeExcluded(
                core.library().engine(), core.library().version());
    }

    /** Negative if an operation can't take the plain path. */
    private int further() {
        return special | SlowPath.sign() | (onHost && VirtualThreads.isCurrent() ? SPECIAL : 0);
    }

    /* The operations. */

    /**
     * Submits a one-sided operation, whose arguments were checked.
     *
     * @param source the window of the elements; null if there are none
     * @param target the window that is written; null with source
     * @param owned memory that NCCL reads during the call, closed when the operation is launched or refused; or null
     */
    public void oneSided(
            Operation operation, NativeStream stream, NativeWindow source, NativeWindow target, NativeMemory owned) {
        boolean taken = false;
        try {
            Batch batch = Batch.current();
            if (batch == null) {
                observed(operation, null, source, target);
                return;
            }
            if (source != null) {
                batch.pin(source.resource());
                batch.pin(target.resource());
            }
            batch.add(core, operation, stream);
            if (owned != null) {
                batch.take(owned);
                taken = true;
            }
        } finally {
            if (owned != null && !taken) {
                owned.close();
            }
        }
    }

    /**
     * Begins an operation that consists of several calls, to be launched together.
     *
     * @param first a buffer of the calls
     * @param second their other buffer; null if there is none
     */
    public CallGroup callGroup(NativeBuffer first, NativeBuffer second) {
        if (further() < 0) {
            return new BatchedCallGroup(core);
        }
        return onHost ? direct.begin(first, second) : direct.begin();
    }

    /* The paths. */

    private static int code(Operator op) {
        return op == null ? 0 : op.code;
    }

    /**
     * Submits an operation on buffers, after {@link OperationChecks#collective}, which is separate so that the compiler
     * inlines both into the methods of {@code Communicator}: together they exceed its limit, which costs 2 ns.
     *
     * @param peer the root or the other rank; 0 if the kind has none
     * @param given null for a call without a configuration
     */
    public void submit(
            OperationKind kind,
            NativeBuffer send,
            NativeBuffer recv,
            long count,
            Operator op,
            int peer,
            NativeStream stream,
            CallConfig given) {
        CallConfig config = isScaled(op) ? restrict(kind, op, send.format.type(), given) : given;
        int wrong = checks.wrong(send, recv, stream);
        if ((wrong | further()) < 0) {
            if (wrong < 0) {
                checks.refuse(send, recv, stream);
            }
            if (further() < 0) {
                Batch batch = Batch.currentFor(core);
                Operation operation = place(batch)
                        .set(
                                kind.code(),
                                send.address,
                                recv.address,
                                count,
                                send.typeCode,
                                code(op),
                                peer,
                                0,
                                stream.handle);
                submitFurther(operation, batch, send, recv, op, stream, config);
                return;
            }
        }
        if (onHost) {
            pinned(kind, send, recv, count, op, peer, stream, config);
        } else {
            now(kind, send, recv, count, op, peer, stream, config);
        }
    }

    private void pinned(
            OperationKind kind,
            NativeBuffer send,
            NativeBuffer recv,
            long count,
            Operator op,
            int peer,
            NativeStream stream,
            CallConfig config) {
        send.pinBoth(recv);
        try {
            now(kind, send, recv, count, op, peer, stream, config);
        } finally {
            send.unpinBoth(recv);
        }
    }

    private void now(
            OperationKind kind,
            NativeBuffer send,
            NativeBuffer recv,
            long count,
            Operator op,
            int peer,
            NativeStream stream,
            CallConfig config) {
        int type = checks.typeCode(send);
        if (config == null) {
            now(kind.code(), send.address, recv.address, count, type, code(op), peer, 0, stream, null);
        } else {
            configured(kind, send, recv, send.address, recv.address, count, type, op, peer, stream, config);
        }
    }

    /** As for buffers, for plain addresses, after {@link OperationChecks#addresses}. */
    public void submit(
            OperationKind kind,
            long send,
            long recv,
            long count,
            DataType type,
            Operator op,
            int peer,
            NativeStream stream) {
        CallConfig config = isScaled(op) ? restrict(kind, op, type, null) : null;
        if (further() < 0) {
            Batch batch = Batch.currentFor(core);
            Operation operation =
                    place(batch).set(kind.code(), send, recv, count, type.code(), code(op), peer, 0, stream.handle);
            submitFurther(operation, batch, null, null, op, stream, config);
        } else if (config == null) {
            now(kind.code(), send, recv, count, type.code(), code(op), peer, 0, stream, null);
        } else {
            configured(kind, null, null, send, recv, count, type.code(), op, peer, stream, config);
        }
    }

    /** Submits the only operation of a plan, which keeps its buffers; not in a group or a capture. */
    public void submit(Operation planned) {
        observed(planned, null, null, null);
    }

    private boolean isScaled(Operator op) {
        return op != null && op.isScaled() && excludes;
    }

    /** Returns the configuration with which a scaled operation gets right results; null if it needs none. */
    private CallConfig restrict(OperationKind kind, Operator op, DataType type, CallConfig given) {
        if (core.size() > 1) {
            if (kind == OperationKind.REDUCE_SCATTER) {
                return excluding(FaultyAlgorithm.PAT, given);
            }
            if (kind == OperationKind.ALL_REDUCE
                    && op == Operator.AVG
                    && windows.haveSymmetric()
                    && RegistrationFaults.lacksAverage(core.library().version(), type)) {
                return excluding(FaultyAlgorithm.SYMMETRIC, given);
            }
        }
        return given;
    }

    private CallConfig excluding(FaultyAlgorithm algorithm, CallConfig given) {
        return (given == null ? noConfig : given).excluding(algorithm);
    }

    /**
     * The plain path: enters the gate, records the operation and calls NCCL.
     *
     * @param config null for a call without a configuration
     */
    private void now(
            int code,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            long extra,
            NativeStream stream,
            CallConfig config) {
        // Locals, because fields would be read again after the gate's fence.
        Gate ours = gate;
        Gate.Pass pass = ours.last();
        long counted = pass.counted();
        if (!ours.enterAgain(pass, counted)) {
            pass = ours.enterNew();
            counted = ~pass.counted();
        }
        try {
            long handle = stream.handle;
            log.record(counted + 1, code, count, type, peer, op, 0, handle);
            int result = OperationKind.call(code, send, recv, count, type, op, peer, extra, core.handle(), handle);
            if (result != nccl.ncclSuccess) {
                settle(result, config);
            }
        } finally {
            pass.countAndLeave();
        }
    }

    /** As {@link #now} with a configuration, which NCCL reads until the call returns or is given up. */
    private void configured(
            OperationKind kind,
            NativeBuffer send,
            NativeBuffer recv,
            long sendAddress,
            long recvAddress,
            long count,
            int type,
            Operator op,
            int peer,
            NativeStream stream,
            CallConfig config) {
        requireConfigurable(kind.code());
        if (config.launchCompletionEvent() != null) {
            Batch batch = Batch.currentFor(core);
            Operation operation = place(batch)
                    .set(kind.code(), sendAddress, recvAddress, count, type, code(op), peer, 0, stream.handle);
            submitFurther(operation, batch, send, recv, op, stream, config);
            return;
        }
        long struct = config.struct(core.library());
        int code = kind.code() | OperationKind.CONFIGURED;
        try {
            now(code, sendAddress, recvAddress, count, type, code(op), peer, struct, stream, config);
        } catch (RuntimeException failure) {
            if (core.isStuckNow()) {
                core.owned().keepUntilEnded(() -> Reference.reachabilityFence(config));
            }
            throw failure;
        } finally {
            Reference.reachabilityFence(config);
        }
    }

    private void requireConfigurable(int code) {
        if ((configurable & 1 << code) == 0) {
            core.require(OperationKind.function(code | OperationKind.CONFIGURED));
            configurable |= 1 << code;
        }
    }

    /** Returns a place for an operation that can't take the plain path: in the thread's open group if there is one. */
    private static Operation place(Batch batch) {
        return batch == null ? new Operation() : batch.next();
    }

    /**
     * Submits an operation that can't take the plain path.
     *
     * @param batch the batch of the thread's open group, or null
     * @param send the send buffer; null for plain addresses, whose memory the caller keeps
     * @param recv the receive buffer; null with send
     */
    private void submitFurther(
            Operation operation,
            Batch batch,
            NativeBuffer send,
            NativeBuffer recv,
            Operator op,
            NativeStream stream,
            CallConfig config) {
        windows.checkForFaults(operation);
        if (config != null) {
            requireConfigurable(operation.code());
        }
        if (batch != null) {
            // Pins come first: a buffer that another thread closes meanwhile must not get into the batch.
            if (send != null) {
                batch.pin(send);
                batch.pin(recv);
            }
            if (op instanceof CreatedOperator created) {
                batch.pin(created.resource);
            }
            batch.add(core, operation, config, stream);
        } else if (config == null) {
            held(operation, send, recv, stream, null);
        } else {
            try (ConfiguredCall call = ConfiguredCall.begin(core, config, stream)) {
                operation.configure(call.struct());
                held(operation, send, recv, stream, config);
                call.launched();
            }
        }
    }

    /**
     * Submits with pinned buffers, so that closing a buffer does not free its memory: in a capture, and on host memory.
     */
    private void held(
            Operation operation, NativeBuffer send, NativeBuffer recv, NativeStream stream, CallConfig config) {
        NativeGraph graph = NativeGraph.capturing(stream);
        if (graph != null) {
            core.registerGraph(graph);
        }
        if (send == null) {
            observed(operation, config, null, null);
            return;
        }
        if (graph != null) {
            send.keepFor(graph);
            recv.keepFor(graph);
        }
        send.pinBoth(recv);
        try {
            observed(operation, config, null, null);
        } finally {
            send.unpinBoth(recv);
        }
    }

    /**
     * Submits with comparison across ranks and events of JDK Flight Recorder, if these are enabled.
     *
     * @param config the configuration; null for a call without one
     * @param source a window that must be open; or null
     * @param target another one; null with source
     */
    private void observed(Operation operation, CallConfig config, NativeWindow source, NativeWindow target) {
        Gate.Pass pass = gate.enter();
        try {
            if (source != null) {
                // The held gate prevents closing after these checks.
                source.check();
                target.check();
            }
            perform(operation, config, pass);
        } finally {
            pass.leave();
        }
    }

    private void perform(Operation operation, CallConfig config, Gate.Pass pass) {
        if (compared) {
            compare(operation, config);
        }
        JfrEvents.OperationEvent event = Jfr.recording ? JfrEvents.operation() : null;
        operation.record(log, pass, 0);
        int result = call(operation);
        if (event != null) {
            JfrEvents.end(event, core);
        }
        if (result != nccl.ncclSuccess) {
            settle(result, config);
        }
    }

    /** Calls NCCL from threads that may be virtual or capturing. Allocates nothing for other threads. */
    private int call(Operation operation) {
        if (core.isOnHost() && operation.usesDefaultStream() && VirtualThreads.isCurrent()) {
            // In the default stream, the host engine waits for the other ranks within the call.
            return BlockingCall.runToCompletion(() -> operation.call(core.handle()), core::endInterruptedCall);
        }
        return NativeGraph.isThreadCapturingCuda()
                ? Cuda.whileCapturing(() -> operation.call(core.handle()))
                : operation.call(core.handle());
    }

    private void compare(Operation operation, CallConfig config) {
        CommunicatorCore.Comparison check = core.check();
        String signature = operation.signature(config == null ? null : config.signature());
        if (check != null && signature != null) {
            check.compare(operation.function(), signature);
        }
    }

    /**
     * Handles the result of the last operation. Its arguments come from the log, so that the plain path need not keep
     * them.
     */
    private void settle(int result, CallConfig config) {
        OperationLog.Entry last = log.last();
        core.calls().settle(result, last.function(), config == null ? last.call() : last.call() + " with " + config);
    }
}
