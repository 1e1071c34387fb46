package io.github.nccl4j.highlevel;

import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Devices on which work of a communicator may never end. CUDA frees memory when the device has nothing left to do, so
 * that freeing would never end either: it is put off until the communicator was aborted. Else a program that closes its
 * buffers before its communicator, as try-with-resources does, would turn an exception into a hang.
 */
final class StalledDevices {
    private static final Map<Device, Set<CommunicatorCore>> STALLED = new HashMap<>();
    private static final Map<Device, List<Runnable>> DEFERRED = new HashMap<>();

    private StalledDevices() {}

    /** A communicator's work was not done in time, or it has failed. */
    static void add(CommunicatorCore communicator) {
        synchronized (STALLED) {
            STALLED.computeIfAbsent(communicator.device(), device -> new HashSet<>())
                    .add(communicator);
        }
    }

    /** Its work has ended after all, or it was aborted. */
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
            // It was closed long ago, and nobody expects an exception of it here.
            System.getLogger("io.github.nccl4j").log(Level.WARNING, "memory could not be freed", e);
        }
    }

    /** Frees memory of a device, now or when its work has ended. */
    static void free(Device device, Runnable free) {
        for (CommunicatorCore communicator : stalledOn(device)) {
            // Looks again at what was late.
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
