package io.github.nccl4j.internal.memory;

import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Devices with work of a communicator that may never end. CUDA frees memory only when the device is idle, so freeing
 * would hang as well: it is deferred until the communicator was aborted. Otherwise a program that closes its buffers
 * before its communicator, as try-with-resources does, would hang instead of throwing.
 */
public final class StalledDevices {
    /** A communicator with work that may never end. Equal to itself only. */
    public interface StalledWork {
        /** The device, as a key. */
        Object device();

        /** Checks again whether the work has ended; then {@link StalledDevices#remove} has been called. */
        boolean mayNeverEnd();
    }

    private static final Map<Object, Set<StalledWork>> STALLED = new HashMap<>();
    private static final Map<Object, List<Runnable>> DEFERRED = new HashMap<>();

    private StalledDevices() {}

    /** Adds a communicator whose work timed out or failed. */
    public static void add(StalledWork communicator) {
        synchronized (STALLED) {
            STALLED.computeIfAbsent(communicator.device(), device -> new HashSet<>())
                    .add(communicator);
        }
    }

    /**
     * Removes a communicator whose work has ended after all, or that was aborted; frees the deferred memory of its
     * device if it was the last one there.
     */
    public static void remove(StalledWork communicator) {
        List<Runnable> due;
        synchronized (STALLED) {
            Set<StalledWork> others = STALLED.get(communicator.device());
            if (others == null || !others.remove(communicator) || !others.isEmpty()) {
                return;
            }
            STALLED.remove(communicator.device());
            due = DEFERRED.remove(communicator.device());
        }
        if (due != null) {
            due.forEach(StalledDevices::freeNow);
        }
    }

    private static List<StalledWork> stalledOn(Object device) {
        synchronized (STALLED) {
            return List.copyOf(STALLED.getOrDefault(device, Set.of()));
        }
    }

    private static void freeNow(Runnable free) {
        try {
            free.run();
        } catch (RuntimeException e) {
            // The buffer was closed long ago: no caller is left that could handle the exception.
            System.getLogger("io.github.nccl4j").log(Level.WARNING, "memory could not be freed", e);
        }
    }

    /** Frees memory of a device now, or later if the device is stalled. */
    public static void free(Object device, Runnable free) {
        for (StalledWork communicator : stalledOn(device)) {
            // Checks again whether the late work has ended.
            communicator.mayNeverEnd();
        }
        synchronized (STALLED) {
            if (STALLED.containsKey(device)) {
                DEFERRED.computeIfAbsent(device, any -> new ArrayList<>()).add(free);
                return;
            }
        }
        free.run();
    }
}
