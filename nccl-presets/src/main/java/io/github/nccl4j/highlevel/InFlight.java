package io.github.nccl4j.highlevel;

import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/**
 * What work in streams still uses: pins, and objects that the garbage collector must leave alone. An event
 * behind the work tells when it is done. Nothing looks at the events by itself; {@link #poll()} does, from calls that wait,
 * free or allocate anyway, and every now and then one that adds more.
 *
 * <p>To make an event, to ask it and to destroy it takes CUDA longer than to take a copy. So a stream has two of them:
 * that of what came last is recorded again behind each that is added, and is asked when what came before is done.
 */
final class InFlight {
    /** So many are added to a stream before one that adds looks what is done, or work on so many bytes. */
    private static final int ADDED_BETWEEN_LOOKS = 16;

    private static final long BYTES_BETWEEN_LOOKS = 16 << 20;

    /** An event, and what is released when it is done. */
    private static final class Marked {
        private final Device device;
        /** 0 before the first is added, and where the host engine has no events. */
        private long event;

        private List<Runnable> releases = new ArrayList<>();

        Marked(Device device) {
            this.device = device;
        }

        void add(CudaStream stream, Runnable release) {
            if (device.isHost()) {
                if (event == 0) {
                    event = HostStreams.createEvent();
                }
                HostStreams.recordEvent(event, stream.handle);
            } else {
                if (event == 0) {
                    event = Cuda.createEvent(device, false);
                }
                Cuda.recordEvent(device, event, stream.handle);
            }
            releases.add(release);
        }

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

        List<Runnable> takeAll() {
            List<Runnable> all = releases;
            releases = new ArrayList<>();
            return all;
        }

        void destroy() {
            if (event == 0) {
                return;
            }
            if (device.isHost()) {
                HostStreams.destroyEvent(event);
                return;
            }
            try {
                Cuda.destroyEvent(device, event);
            } catch (CudaException lost) {
                // An error of the work, which is for those who wait for it.
            }
        }
    }

    /**
     * Of one stream. Has a lock of its own: CUDA lets who records an event wait while the stream is full, which must stop
     * nobody else.
     */
    private static final class Queue {
        private final ReentrantLock lock = new ReentrantLock();
        private Marked first;
        private Marked last;
        private int added;
        private long bytes;
        /** Written with the lock of all queues, too. */
        private boolean removed;

        Queue(Device device) {
            first = new Marked(device);
            last = new Marked(device);
        }

        /** Adds something and perhaps takes out what is done; false if this is no stream's queue any more. */
        boolean add(CudaStream stream, long of, Runnable release, List<Runnable> done) {
            lock.lock();
            try {
                if (removed) {
                    return false;
                }
                last.add(stream, release);
                added++;
                bytes += of;
                boolean looks = added >= ADDED_BETWEEN_LOOKS || bytes >= BYTES_BETWEEN_LOOKS;
                if (looks && !CudaGraph.isThreadCapturing()) {
                    takeDone(done);
                }
                return true;
            } finally {
                lock.unlock();
            }
        }

        /** Takes out what is done; true if nothing is left, which is the end of it. Not while something is added. */
        boolean end(List<Runnable> done) {
            if (!lock.tryLock()) {
                return false;
            }
            try {
                takeDone(done);
                removed = first.releases.isEmpty() && last.releases.isEmpty();
                if (removed) {
                    first.destroy();
                    last.destroy();
                }
                return removed;
            } finally {
                lock.unlock();
            }
        }

        private void takeDone(List<Runnable> done) {
            added = 0;
            bytes = 0;
            for (int i = 0; i < 2; i++) {
                if (first.releases.isEmpty()) {
                    Marked empty = first;
                    first = last;
                    last = empty;
                }
                if (first.releases.isEmpty() || !first.isDone()) {
                    return;
                }
                done.addAll(first.takeAll());
            }
        }
    }

    /**
     * By stream, and not by its handle, which may be that of another stream after it was destroyed: an event that is recorded
     * there would tell nothing of the work before.
     */
    private static final Map<CudaStream, Queue> QUEUES = new IdentityHashMap<>();

    /** With events of others. */
    private static final List<Marked> SINGLE = new ArrayList<>();

    private static volatile boolean empty = true;

    private InFlight() {}

    /**
     * Releases something when all work that is in a stream now is done, or when the graph is closed that it is captured
     * for. It is released in any case, before an exception, too. The stream is pinned.
     *
     * @param bytes what the work is on
     */
    static void keep(CudaStream stream, long bytes, Runnable release) {
        List<Runnable> done = new ArrayList<>();
        boolean capturing;
        try {
            capturing = stream.isCapturingNow();
            while (!capturing && !queue(stream).add(stream, bytes, release, done)) {
                // It was removed meanwhile; the next one is new.
            }
        } catch (RuntimeException failure) {
            giveUp(stream, failure);
            release.run();
            throw failure;
        }
        if (capturing) {
            keepForGraph(CudaGraph.capturing(stream), release);
        }
        done.forEach(InFlight::release);
    }

    private static Queue queue(CudaStream stream) {
        synchronized (QUEUES) {
            Queue known = QUEUES.get(stream);
            if (known != null && !known.removed) {
                return known;
            }
        }
        // Of many streams with little each, such as wrappers that are made anew for each copy, none would come to look.
        poll();
        synchronized (QUEUES) {
            empty = false;
            return QUEUES.compute(stream, (key, old) -> old == null || old.removed ? new Queue(key.device) : old);
        }
    }

    /** Releases something when an event is done that was recorded in a stream, and destroys the event. */
    static void keep(Device device, long event, Runnable release) {
        Marked marked = new Marked(device);
        marked.event = event;
        marked.releases.add(release);
        synchronized (QUEUES) {
            empty = false;
            SINGLE.add(marked);
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
    private static void giveUp(CudaStream stream, RuntimeException failure) {
        try {
            if (stream.device.isHost()) {
                HostStreams.synchronizeStream(stream.handle);
            } else {
                Cuda.synchronizeStream(stream.device, stream.handle);
            }
        } catch (RuntimeException another) {
            failure.addSuppressed(another);
        }
    }

    /** Releases what is not used any more. May free memory, and so wait for the device; a capture would not survive it. */
    static void poll() {
        Dlpack.poll();
        if (empty || CudaGraph.isThreadCapturing()) {
            return;
        }
        List<Runnable> done = new ArrayList<>();
        synchronized (QUEUES) {
            QUEUES.values().removeIf(queue -> queue.end(done));
            SINGLE.removeIf(marked -> {
                boolean isDone = marked.isDone();
                if (isDone) {
                    done.addAll(marked.takeAll());
                    marked.destroy();
                }
                return isDone;
            });
            empty = QUEUES.isEmpty() && SINGLE.isEmpty();
        }
        done.forEach(InFlight::release);
    }
}
