package io.github.nccl4j.highlevel;

import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * What work in streams still uses: pins, and objects that the garbage collector must leave alone. An event
 * behind the work tells when it is done. Nothing looks at the events by itself; {@link #poll()} does, from calls that wait,
 * free or allocate anyway, and from those that add more.
 */
final class InFlight {
    private record Stream(Device device, long handle) {}

    private record Entry(Device device, long event, Runnable release) {
        boolean isDone() {
            if (device.isHost()) {
                return HostStreams.eventHasEnded(event);
            }
            try {
                return Cuda.eventIsDoneWhileCapturing(device, event);
            } catch (CudaException lost) {
                // The device does no more work.
                return true;
            }
        }

        void end() {
            if (device.isHost()) {
                HostStreams.destroyEvent(event);
            } else {
                destroyOnCuda();
            }
            InFlight.release(release);
        }

        private void destroyOnCuda() {
            try {
                Cuda.destroyEvent(device, event);
            } catch (CudaException lost) {
                // An error of the work, which is for those who wait for it.
            }
        }
    }

    /** Oldest first for each stream, so that only the first has to be asked. */
    private static final Map<Stream, Deque<Entry>> ENTRIES = new HashMap<>();

    private static volatile boolean empty = true;

    private InFlight() {}

    /**
     * Releases something when all work that is in a stream now is done, or when the graph is closed that it is captured
     * for. It is released in any case, before an exception, too. The stream is pinned.
     */
    static void keep(CudaStream stream, Runnable release) {
        Device device = stream.device;
        long event = 0;
        try {
            if (stream.isCapturingNow()) {
                keepForGraph(CudaGraph.capturing(stream), release);
                return;
            }
            poll();
            if (device.isHost()) {
                event = HostStreams.createEvent();
                HostStreams.recordEvent(event, stream.handle);
                keep(device, stream.handle, event, release);
                return;
            }
            event = Cuda.createEvent(device, false);
            Cuda.recordEvent(device, event, stream.handle);
        } catch (CudaException failure) {
            giveUp(device, stream.handle, event, failure);
            release.run();
            throw failure;
        }
        keep(device, stream.handle, event, release);
    }

    /** Releases something when an event is done that was recorded in a stream, and destroys the event. */
    static void keep(Device device, long stream, long event, Runnable release) {
        synchronized (ENTRIES) {
            ENTRIES.computeIfAbsent(new Stream(device, stream), key -> new ArrayDeque<>())
                    .add(new Entry(device, event, release));
            empty = false;
        }
    }

    /** Nobody called for it now, so what goes wrong is only logged. */
    static void release(Runnable release) {
        try {
            release.run();
        } catch (RuntimeException failure) {
            System.getLogger("io.github.nccl4j")
                    .log(Level.WARNING, "what work in a stream used could not be released", failure);
        }
    }

    /** Of a graph that other code captures, only that code knows how long it lives. */
    private static void keepForGraph(CudaGraph graph, Runnable release) {
        if (graph == null) {
            release.run();
        } else {
            graph.keep(release);
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

    /** Releases what is not used any more. May free memory, and so wait for the device; a capture would not survive it. */
    static void poll() {
        Dlpack.poll();
        if (empty || CudaGraph.isThreadCapturing()) {
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
