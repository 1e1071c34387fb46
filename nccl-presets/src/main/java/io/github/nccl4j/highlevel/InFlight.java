package io.github.nccl4j.highlevel;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * What work in streams of CUDA devices still uses: pins, and objects that the garbage collector must leave alone. An event
 * behind the work tells when it is done. Nothing looks at the events by itself; {@link #poll()} does, from calls that wait,
 * free or allocate anyway, and from those that add more.
 */
final class InFlight {
    private record Stream(Device device, long handle) {}

    private record Entry(Device device, long event, Runnable release) {
        boolean isDone() {
            try {
                return Cuda.eventIsDoneWhileCapturing(device, event);
            } catch (CudaException lost) {
                // The device does no more work.
                return true;
            }
        }

        void end() {
            try {
                Cuda.destroyEvent(device, event);
            } catch (CudaException lost) {
                // An error of the work, which is for those who wait for it.
            }
            release.run();
        }
    }

    /** Oldest first for each stream, so that only the first has to be asked. */
    private static final Map<Stream, Deque<Entry>> ENTRIES = new HashMap<>();

    private static volatile boolean empty = true;

    private InFlight() {}

    /**
     * Releases something when all work that is in a stream now is done. It is released in any case, before an exception,
     * too.
     */
    static void keep(CudaStream stream, Runnable release) {
        poll();
        Device device = stream.device;
        long event = 0;
        try {
            event = Cuda.createEvent(device, false);
            Cuda.recordEvent(device, event, stream.handle);
        } catch (CudaException failure) {
            giveUp(device, stream.handle, event, failure);
            release.run();
            throw failure;
        }
        synchronized (ENTRIES) {
            ENTRIES.computeIfAbsent(new Stream(device, stream.handle), key -> new ArrayDeque<>())
                    .add(new Entry(device, event, release));
            empty = false;
        }
    }

    /** Without an event to ask, the work is waited for here. */
    private static void giveUp(Device device, long stream, long event, CudaException failure) {
        try {
            Cuda.synchronizeStream(device, stream);
            if (event != 0) {
                Cuda.destroyEvent(device, event);
            }
        } catch (CudaException another) {
            failure.addSuppressed(another);
        }
    }

    /** Releases what is not used any more. May free memory, and so wait for the device. */
    static void poll() {
        if (empty) {
            return;
        }
        List<Entry> done = new ArrayList<>();
        synchronized (ENTRIES) {
            Iterator<Deque<Entry>> streams = ENTRIES.values().iterator();
            while (streams.hasNext()) {
                Deque<Entry> entries = streams.next();
                while (!entries.isEmpty() && entries.peek().isDone()) {
                    done.add(entries.remove());
                }
                if (entries.isEmpty()) {
                    streams.remove();
                }
            }
            empty = ENTRIES.isEmpty();
        }
        done.forEach(Entry::end);
    }
}
