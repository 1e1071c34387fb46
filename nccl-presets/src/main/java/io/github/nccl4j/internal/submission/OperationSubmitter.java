package io.github.nccl4j.internal.submission;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.config.FaultyAlgorithm;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.operation.Operation.Elements;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationKind.Code;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.operation.Operator;
import io.github.nccl4j.internal.operation.RegistrationFaults;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.SlowPath;
import io.github.nccl4j.internal.threads.VirtualThreads;
import java.lang.ref.Reference;

/**
 * Passes all operations of a communicator to NCCL, after the checks. An operation leaves by one of two exits: the plain
 * call ({@link #now}), which passes numbers, and the recorded one ({@link #recorded}), which passes an {@link Operation}:
 * in a group, in a capture, in a virtual thread, and while calls are compared or observed.
 *
 * <p>For the communicator's thread; the gate refuses other threads.
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

    /** Submits a put between windows, whose arguments were checked. */
    public void put(
            NativeBuffer elements,
            NativeWindow source,
            NativeWindow target,
            long offset,
            int peer,
            NativeStream stream) {
        // NCCL checks the address of 0 elements, too, and the address of a window's end is in no window.
        long from = elements.length == 0 ? source.address() : elements.address;
        long to = target.handle();
        int type = elements.typeCode;
        source.resource().pin();
        try {
            target.resource().pin();
            try {
                if (further() < 0) {
                    Elements put = new Elements(from, to, elements.length, type);
                    Operation operation = new Operation(Code.PUT_SIGNAL, put, 0, peer, offset, stream.handle);
                    recorded(operation, stream, null, null, null, source.resource(), target.resource());
                } else {
                    now(Code.PUT_SIGNAL, from, to, elements.length, type, 0, peer, offset, stream, null);
                }
            } finally {
                target.resource().unpin();
            }
        } finally {
            source.resource().unpin();
        }
    }

    /** Submits a signal to a rank. */
    public void signal(int peer, NativeStream stream) {
        if (further() < 0) {
            recorded(
                    Operation.of(OperationKind.SIGNAL, Elements.NONE, null, peer, stream.handle),
                    stream,
                    null,
                    null,
                    null);
        } else {
            now(Code.SIGNAL, 0, 0, 0, 0, 0, peer, 0, stream, null);
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
                recorded(operation(kind, send, recv, count, op, peer, stream), stream, config, send, recv, keptOf(op));
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
        } else if (config.launchCompletionEvent() != null) {
            recorded(operation(kind, send, recv, count, op, peer, stream), stream, config, send, recv, keptOf(op));
        } else {
            configured(kind.code(), send.address, recv.address, count, type, code(op), peer, stream, config);
        }
    }

    private static Operation operation(
            OperationKind kind,
            NativeBuffer send,
            NativeBuffer recv,
            long count,
            Operator op,
            int peer,
            NativeStream stream) {
        Elements elements = new Elements(send.address, recv.address, count, send.typeCode);
        return Operation.of(kind, elements, op, peer, stream.handle);
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
            Elements elements = new Elements(send, recv, count, type.code());
            Operation operation = Operation.of(kind, elements, op, peer, stream.handle);
            recorded(operation, stream, config, null, null, keptOf(op));
        } else if (config == null) {
            now(kind.code(), send, recv, count, type.code(), code(op), peer, 0, stream, null);
        } else {
            configured(kind.code(), send, recv, count, type.code(), code(op), peer, stream, config);
        }
    }

    /** Submits the only call of a plan, which keeps its buffers; not in a group or a capture. */
    public void submit(Call planned) {
        perform(planned);
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
            int plain,
            long send,
            long recv,
            long count,
            int type,
            int op,
            int peer,
            NativeStream stream,
            CallConfig config) {
        requireConfigurable(plain);
        long struct = config.struct(core.library());
        try {
            now(plain | OperationKind.CONFIGURED, send, recv, count, type, op, peer, struct, stream, config);
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

    /* The other exit. */

    /** The resource of the operator if it has one. */
    private static Resource[] keptOf(Operator op) {
        return op instanceof CreatedOperator created ? new Resource[] {created.resource} : new Resource[0];
    }

    /**
     * The exit for all other operations: adds the operation to the thread's open group, or calls NCCL with pinned buffers,
     * so that closing a buffer does not free its memory: in a capture, in a virtual thread, compared or observed.
     *
     * @param config null for a call without a configuration
     * @param send the send buffer; null for memory that the caller keeps
     * @param recv the receive buffer; null with send
     * @param kept resources that a group keeps until its launch; without a group, the caller keeps them
     */
    void recorded(
            Operation operation,
            NativeStream stream,
            CallConfig config,
            NativeBuffer send,
            NativeBuffer recv,
            Resource... kept) {
        windows.checkForFaults(operation);
        if (config != null) {
            requireConfigurable(operation.code());
        }
        Batch batch = Batch.currentFor(core);
        if (batch != null) {
            // Pins come first: a buffer that another thread closes meanwhile must not get into the batch.
            if (send != null) {
                batch.pin(send);
                batch.pin(recv);
            }
            for (Resource one : kept) {
                batch.pin(one);
            }
            batch.add(core, operation, config, stream);
            return;
        }
        NativeGraph graph = NativeGraph.capturing(stream);
        if (graph != null) {
            core.registerGraph(graph);
        }
        if (send == null) {
            alone(operation, stream, config);
            return;
        }
        if (graph != null) {
            send.keepFor(graph);
            recv.keepFor(graph);
        }
        send.pinBoth(recv);
        try {
            alone(operation, stream, config);
        } finally {
            send.unpinBoth(recv);
        }
    }

    private void alone(Operation operation, NativeStream stream, CallConfig config) {
        if (config == null) {
            perform(new Call(core, operation, null, null));
        } else {
            try (ConfiguredCall call = ConfiguredCall.begin(core, config, stream)) {
                perform(new Call(core, operation.configured(call.struct()), config, null));
                call.launched();
            }
        }
    }

    /** Makes a call, with comparison across ranks and events of JDK Flight Recorder, if these are enabled. */
    private void perform(Call call) {
        Gate.Pass pass = gate.enter();
        try {
            CommunicatorCore.Comparison check = compared ? core.check() : null;
            String signature = check == null ? null : call.signature();
            if (signature != null) {
                check.compare(call.function(), signature);
            }
            int result = call.makeAlone(pass);
            if (result != nccl.ncclSuccess) {
                settle(result, call.config());
            }
        } finally {
            pass.leave();
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
