package io.github.nccl4j.highlevel;

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
final class StalledDevices {
    private static final Map<Device, Set<CommunicatorCore>> STALLED = new HashMap<>();
    private static final Map<Device, List<Runnable>> DEFERRED = new HashMap<>();

    private StalledDevices() {}

    /** Adds a communicator whose work timed out or failed. */
    static void add(CommunicatorCore communicator) {
        synchronized (STALLED) {
            STALLED.computeIfAbsent(communicator.device(), device -> new HashSet<>())
                    .add(communicator);
        }
    }

    /**
     * Removes a communicator whose work has ended after all, or that was aborted; frees the deferred memory of its
     * device if it was the last one there.
     */
    static void remove(CommunicatorCore communicator) {
        List<Runnable> due;
        synchronized (STALLED) {
            Set<CommunicatorCore> others = STALLED.get(communicator.device());
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

    private static List<CommunicatorCore> stalledOn(Device device) {
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
    static void free(Device device, Runnable free) {
        for (CommunicatorCore communicator : stalledOn(device)) {
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
