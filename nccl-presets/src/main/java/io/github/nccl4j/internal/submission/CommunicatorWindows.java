package io.github.nccl4j.internal.submission;

import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.config.FaultyAlgorithm;
import io.github.nccl4j.internal.config.ReportedFaults;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.operation.Operation;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.RegistrationFaults;
import java.util.Arrays;
import java.util.function.Supplier;

/**
 * The open windows of a communicator, and the checks for operations of NCCL that are faulty on windows.
 *
 * <p>Windows are added and removed by the holder of the gate's pass; any thread may look them up.
 */
public final class CommunicatorWindows {
    private final CommunicatorCore core;

    /** Open windows; copy-on-write. */
    private volatile NativeWindow[] windows = {};

    private boolean sharesMemory(NativeWindow added) {
        for (NativeWindow window : windows) {
            if (window.isSymmetric() && window.sharesMemory(added)) {
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

    public CommunicatorWindows(CommunicatorCore core) {
        this.core = core;
    }

    /** Sets the action for the first window on which some operations are faulty. */
    public void onFaults(Runnable action) {
        checkFaults = action;
    }

    /** As {@link NativeWindow#register}. */
    public NativeWindow register(NativeBuffer buffer, int flags, Supplier<RuntimeException> noWindow) {
        return NativeWindow.register(core, this, buffer, flags, noWindow);
    }

    /** Adds a window that has been opened. */
    public synchronized void add(NativeWindow window) {
        if (window.isSymmetric() && sharesMemory(window)) {
            NcclLibrary library = core.library();
            ReportedFaults.warnOnce(ReportedFaults.ofSharedMemory(library.engine(), library.version()));
        }
        NativeWindow[] more = Arrays.copyOf(windows, windows.length + 1);
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
    public int registered() {
        return registered;
    }

    /** Removes a window that will be deregistered. */
    public synchronized void remove(NativeWindow window) {
        windows = Arrays.stream(windows).filter(one -> one != window).toArray(NativeWindow[]::new);
    }

    /** As {@link #symmetricWindowOf(long, long)} for a buffer of this device. */
    public NativeWindow symmetricWindowOf(NativeBuffer buffer) {
        return symmetricWindowOf(buffer.address, buffer.bytes);
    }

    /**
     * The open window with {@code COLL_SYMMETRIC} that contains a range of this device's memory; null if
     * there is none.
     */
    public NativeWindow symmetricWindowOf(long address, long bytes) {
        for (NativeWindow window : windows) {
            if (window.isSymmetric() && window.covers(address, bytes) && window.isOpen()) {
                return window;
            }
        }
        return null;
    }

    /** Refuses operations that would return wrong elements. */
    void checkForFaults(Operation operation) {
        if (faulty) {
            Version version = core.library().version();
            Operation.Elements elements = operation.elements();
            int size = ElementType.values().get(elements.type()).sizeInBytes();
            OperationKind kind = OperationKind.of(operation.code());
            String problem = RegistrationFaults.wrongResult(version, kind, elements.send(), elements.count(), size);
            refuse(problem, version, elements.send(), elements.recv());
        }
    }

    /** True if a window has {@code COLL_SYMMETRIC}. Registering is collective: the same on all ranks. */
    public boolean haveSymmetric() {
        for (NativeWindow window : windows) {
            if (window.isSymmetric()) {
                return true;
            }
        }
        return false;
    }

    /** Refuses an all-reduce with AVG that would fail, unless the call can exclude the kernels. */
    public void checkAverage(long send, long recv, DataType type) {
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
