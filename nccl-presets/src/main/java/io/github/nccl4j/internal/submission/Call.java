package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.Cuda;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.diagnostics.Jfr;
import io.github.nccl4j.internal.diagnostics.JfrEvents;
import io.github.nccl4j.internal.failure.BlockingCall;
import io.github.nccl4j.internal.operation.Deferred;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.VirtualThreads;

/**
 * A call that does not take the plain path: in a group, or alone in a capture, in a virtual thread, compared or observed.
 *
 * @param operation null for a call with results
 * @param config the configuration; null for a call without one
 * @param deferred the call with results; null for an operation
 */
public record Call(CommunicatorCore core, Operation operation, CallConfig config, Deferred deferred) {
    /** True if the native group must contain no other call of the communicator. */
    boolean isAlone() {
        return deferred != null && deferred.mustBeAlone();
    }

    /** The arguments that must be equal on all ranks; null if there are none. */
    String signature() {
        return deferred != null ? null : operation.signature(config == null ? null : config.signature());
    }

    /** The name of the C function. */
    String function() {
        return deferred != null ? deferred.function() : operation.function();
    }

    /** A description for messages. */
    String describe() {
        if (deferred != null) {
            return deferred.toString();
        }
        return config == null ? operation.describe() : operation.describe() + " with " + config;
    }

    /** Records the call, which follows. */
    void record(Gate.Pass pass, int group) {
        if (deferred != null) {
            deferred.record(pass, group);
        } else {
            JfrEvents.OperationEvent event = Jfr.recording ? JfrEvents.operation() : null;
            core.operationLog().record(operation, pass, group);
            end(event);
        }
    }

    /** Makes the call in a native group. */
    int makeInGroup() {
        return deferred != null ? deferred.call() : operation.call(core.handle());
    }

    /** Records the operation and calls NCCL, outside of groups. */
    int makeAlone(Gate.Pass pass) {
        JfrEvents.OperationEvent event = Jfr.recording ? JfrEvents.operation() : null;
        core.operationLog().record(operation, pass, 0);
        int result = callAlone();
        end(event);
        return result;
    }

    /** Calls NCCL from a thread that may be virtual or capturing. Allocates nothing for other threads. */
    private int callAlone() {
        if (core.isOnHost() && operation.usesDefaultStream() && VirtualThreads.isCurrent()) {
            // In the default stream, the host engine waits for the other ranks within the call.
            return BlockingCall.runToCompletion(() -> operation.call(core.handle()), core::endInterruptedCall);
        }
        return NativeGraph.isThreadCapturingCuda()
                ? Cuda.whileCapturing(() -> operation.call(core.handle()))
                : operation.call(core.handle());
    }

    private void end(JfrEvents.OperationEvent event) {
        if (event != null) {
            JfrEvents.end(event, core);
        }
    }
}
