package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.highlevel.CudaException;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Resources that work in streams still uses: pins, and objects that the garbage collector must not collect. An event
 * behind the work shows its completion. Events are checked only in {@link #poll()}, from calls that wait, free or
 * allocate anyway, and sometimes from a call that adds a resource.
 *
 * <p>Creating, querying and destroying an event takes CUDA longer than enqueuing a copy. Therefore each stream has two
 * events: the later one is recorded again behind each addition and is queried once the earlier work is done.
 */
public final class PendingReleases {
    /** Number of additions to a stream, or of bytes of work, after which an addition checks for completed work. */
    private static final int ADDITIONS_BETWEEN_POLLS = 16;

    private static final long BYTES_BETWEEN_POLLS = 16 << 20;

    /** An event, and the resources that are released when it is done. */
    private static final class MarkedReleases {
        private final NativeDevice device;
        /** 0 before the first addition, and if the host engine has no events. */
        private long event;

        private List<Runnable> releases = new ArrayList<>();

        MarkedReleases(NativeDevice device) {
            this.device = device;
        }

        void add(NativeStream stream, Runnable release) {
            if (event == 0) {
                event = DeviceStreams.createEvent(device.context(), false);
            }
            DeviceStreams.recordEvent(device.context(), event, stream.handle);
            releases.add(release);
        }

        boolean isDone() {
            if (device.isHost()) {
                return HostStreams.eventHasEnded(event);
            }
            try {
                return Cuda.eventIsDoneWhileCapturing(device.context(), event);
            } catch (CudaException lost) {
                // The device is lost and does no more work.
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
            try {
                DeviceStreams.destroyEvent(device.context(), event);
            } catch (CudaException lost) {
                // An error of the work: reported to the threads that wait for it.
            }
        }
    }

    /**
     * Queue of one stream. Has a lock of its own: CUDA blocks a thread that records an event while the stream is full,
     * and other streams must not wait for that.
     */
    private static final class Queue {
        private final ReentrantLock lock = new ReentrantLock();
        private MarkedReleases first;
        private MarkedReleases last;
        private int added;
        private long bytes;
        /** Also written with the lock of QUEUES held. */
        private boolean removed;

        Queue(NativeDevice device) {
            first = new MarkedReleases(device);
            last = new MarkedReleases(device);
        }

        /**
         * Adds a resource and may take out the resources that are no longer used. Returns false if the queue was
         * removed.
         */
        boolean add(NativeStream stream, long of, Runnable release, List<Runnable> done) {
            lock.lock();
            try {
                if (removed) {
                    return false;
                }
                last.add(stream, release);
                added++;
                bytes += of;
                boolean polls = added >= ADDITIONS_BETWEEN_POLLS || bytes >= BYTES_BETWEEN_POLLS;
                if (polls && !NativeGraph.isThreadCapturing()) {
                    takeDone(done);
                }
                return true;
            } finally {
                lock.unlock();
            }
        }

        /**
         * Takes out the resources that are no longer used. Returns true if none is left, in which case the queue is
         * removed. Returns false if another thread is adding.
         */
        boolean closeIfIdle(List<Runnable> done) {
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
                    MarkedReleases empty = first;
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
     * Queues by stream. Not by handle: a new stream may get the handle of a destroyed one, whose events would not cover
     * the earlier work.
     */
    private static final Map<NativeStream, Queue> QUEUES = new IdentityHashMap<>();

    /** Entries whose event was recorded by the caller. */
    private static final List<MarkedReleases> SINGLE_EVENTS = new ArrayList<>();

    private static volatile boolean empty = true;

    /** Releases other resources, or null. */
    private static volatile Runnable alsoPolled;

    private PendingReleases() {}

    /**
     * Releases a resource when the present work of a stream is done, or, if the stream is being captured, when the
     * graph is closed. The resource is released in any case, also before an exception. The caller has pinned the
     * stream.
     *
     * @param bytes the amount of memory that the work uses
     */
    public static void add(NativeStream stream, long bytes, Runnable release) {
        List<Runnable> done = new ArrayList<>();
        boolean capturing;
        try {
            capturing = stream.isCapturingNow();
            while (!capturing && !queue(stream).add(stream, bytes, release, done)) {
                // Another thread removed the queue meanwhile; the next attempt creates one.
            }
        } catch (RuntimeException failure) {
            awaitWork(stream, failure);
            release.run();
            throw failure;
        }
        if (capturing) {
            keepForGraph(NativeGraph.capturing(stream), release);
        }
        done.forEach(PendingReleases::release);
    }

    private static Queue queue(NativeStream stream) {
        synchronized (QUEUES) {
            Queue known = QUEUES.get(stream);
            if (known != null && !known.removed) {
                return known;
            }
        }
        // Many streams with few additions each, such as wrappers that are created for each copy, would never reach the
        // threshold.
        poll();
        synchronized (QUEUES) {
            empty = false;
            return QUEUES.compute(stream, (key, old) -> old == null || old.removed ? new Queue(key.device) : old);
        }
    }

    /** Releases a resource when an event that was recorded in a stream is done, and destroys the event. */
    public static void add(NativeDevice device, long event, Runnable release) {
        MarkedReleases marked = new MarkedReleases(device);
        marked.event = event;
        marked.releases.add(release);
        synchronized (QUEUES) {
            empty = false;
            SINGLE_EVENTS.add(marked);
        }
    }

    /** Releases a resource. A failure is logged, because no caller expects it. */
    public static void release(Runnable release) {
        try {
            release.run();
        } catch (RuntimeException failure) {
            System.getLogger("io.github.nccl4j")
                    .log(Level.WARNING, "a resource of work in a stream could not be released", failure);
        }
    }

    /** Only the code that captures a graph knows the graph's lifetime. */
    private static void keepForGraph(NativeGraph graph, Runnable release) {
        if (graph == null) {
            release.run();
        } else {
            graph.keep(release);
        }
    }

    /** Waits for the work, because there is no event to query. */
    private static void awaitWork(NativeStream stream, RuntimeException failure) {
        try {
            stream.awaitEnd(null);
        } catch (RuntimeException another) {
            failure.addSuppressed(another);
        }
    }

    /** Sets an action that {@link #poll} runs, too. */
    public static void pollAlso(Runnable action) {
        alsoPolled = action;
    }

    /**
     * Releases the resources that are no longer used. May free memory, and therefore wait for the device. Does nothing
     * during a capture, which such a wait would end.
     */
    public static void poll() {
        Runnable also = alsoPolled;
        if (also != null) {
            also.run();
        }
        if (empty || NativeGraph.isThreadCapturing()) {
            return;
        }
        List<Runnable> done = new ArrayList<>();
        synchronized (QUEUES) {
            QUEUES.values().removeIf(queue -> queue.closeIfIdle(done));
            SINGLE_EVENTS.removeIf(marked -> {
                boolean isDone = marked.isDone();
                if (isDone) {
                    done.addAll(marked.takeAll());
                    marked.destroy();
                }
                return isDone;
            });
            empty = QUEUES.isEmpty() && SINGLE_EVENTS.isEmpty();
        }
        done.forEach(PendingReleases::release);
    }
}
