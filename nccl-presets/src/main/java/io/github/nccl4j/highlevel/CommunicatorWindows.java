package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.config.FaultyAlgorithm;
import io.github.nccl4j.internal.config.ReportedFaults;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.RegistrationFaults;
import java.util.Arrays;

/**
 * The open windows of a communicator, and the checks for operations of NCCL that are faulty on windows.
 *
 * <p>Windows are added and removed by the holder of the gate's pass; any thread may look them up.
 */
final class CommunicatorWindows {
    private final CommunicatorCore core;

    /** Open windows; copy-on-write. */
    private volatile Window[] windows = {};

    private boolean sharesMemory(Window added) {
        for (Window window : windows) {
            if (window.isSymmetric() && window.buffer().sharesMemory(added.buffer())) {
                return true;
            }
        }
        return false;
    }

    /** The number of windows that were ever added. */
    private volatile int registered;

    /** True if some operations of NCCL on the windows are faulty. */
    private volatile boolean faulty;

    /** Makes all operations check for faults from now on. */
    private Runnable checkFaults = () -> {};

    CommunicatorWindows(CommunicatorCore core) {
        this.core = core;
    }

    /** Sets the action for the first window on which some operations are faulty. */
    void onFaults(Runnable action) {
        checkFaults = action;
    }

    /** Adds a window that has been opened. */
    synchronized void add(Window window) {
        if (window.isSymmetric() && sharesMemory(window)) {
            NcclLibrary library = core.library();
            ReportedFaults.warnOnce(ReportedFaults.ofSharedMemory(library.engine(), library.version()));
        }
        Window[] more = Arrays.copyOf(windows, windows.length + 1);
        more[windows.length] = window;
        windows = more;
        registered++;
        RegistrationFaults.warnOnce(core.library());
        if (window.isSymmetric() && RegistrationFaults.affect(core.library())) {
            faulty = true;
            checkFaults.run();
        }
    }

    /** The number of windows that were ever added: checks of operations hold until it changes. */
    int registered() {
        return registered;
    }

    /** Removes a window that will be deregistered. */
    synchronized void remove(Window window) {
        windows = Arrays.stream(windows).filter(one -> one != window).toArray(Window[]::new);
    }

    /** As {@link #symmetricWindowOf(long, long)} for a buffer of this device. */
    Window symmetricWindowOf(DeviceBuffer<?> buffer) {
        return symmetricWindowOf(buffer.address, buffer.sizeInBytes());
    }

    /**
     * The open window with {@link WindowFlag#COLL_SYMMETRIC} that contains a range of this device's memory; null if
     * there is none.
     */
    Window symmetricWindowOf(long address, long bytes) {
        for (Window window : windows) {
            if (window.isSymmetric() && window.covers(address, bytes) && window.isOpen()) {
                return window;
            }
        }
        return null;
    }

    /** Refuses operations that would return wrong elements. */
    void checkForFaults(OperationKind kind, long send, long recv, long count, int type) {
        if (faulty) {
            Version version = core.library().version();
            int size = ElementType.values().get(type).sizeInBytes();
            refuse(RegistrationFaults.wrongResult(version, kind, send, count, size), version, send, recv);
        }
    }

    /** True if a window has {@link WindowFlag#COLL_SYMMETRIC}. Registering is collective: the same on all ranks. */
    boolean haveSymmetric() {
        for (Window window : windows) {
            if (window.isSymmetric()) {
                return true;
            }
        }
        return false;
    }

    /** Refuses an all-reduce with AVG that would fail, unless the call can exclude the kernels. */
    void checkAverage(long send, long recv, DataType type) {
        Version version = core.library().version();
        if (windows.length > 0 && !core.isOnHost() && !FaultyAlgorithm.mustBeExcluded(version)) {
            refuse(RegistrationFaults.missingAverage(version, type), version, send, recv);
        }
    }

    private void refuse(String problem, Version version, long send, long recv) {
        if (problem != null
                && core.size() > 1
                && RegistrationFaults.usesKernels(
                        version, symmetricWindowOf(send, 0) != null, symmetricWindowOf(recv, 0) != null)) {
            throw new IllegalArgumentException(problem);
        }
    }
}
