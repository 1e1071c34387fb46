package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.cuda.NativeEvent;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.threads.Gate;
import io.github.nccl4j.internal.threads.Suppressed;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Stream that belongs to a communicator, and the events that mark its work. Events are reused once their work is done;
 * all are closed with the communicator.
 */
public final class CommunicatorStreams {
    private static final int POLLED_AT_ONCE = 64;

    private final CommunicatorCore core;
    private final NativeDevice device;
    private NativeStream own;
    private NativeEvent order;
    /** Events that are free for reuse. */
    private final Deque<NativeEvent> events = new ArrayDeque<>();
    /** Work that has not been observed as done, oldest first. */
    private final Deque<StreamWork> pending = new ArrayDeque<>();

    private boolean closed;

    public CommunicatorStreams(CommunicatorCore core) {
        this.core = core;
        device = core.device();
    }

    public CommunicatorCore core() {
        return core;
    }

    public synchronized NativeStream ownStream() {
        if (own == null) {
            own = NativeStream.create(device, true);
            order = new NativeEvent(device, false);
        }
        return own;
    }

    public synchronized void letDefaultStreamWait() {
        chain(ownStream(), NativeStream.wrap(device, 0));
    }

    public synchronized void waitForDefaultStream() {
        chain(NativeStream.wrap(device, 0), ownStream());
    }

    private void chain(NativeStream first, NativeStream then) {
        order.record(first);
        then.waitFor(order);
    }

    /** As {@link #mark} with the gate's pass. */
    public StreamWork markAlone(NativeStream stream) {
        Gate.Pass pass = core.gate().enter();
        try {
            return mark(stream);
        } finally {
            pass.leave();
        }
    }

    /** Marks the end of the present work of a stream, which includes the last recorded operation. */
    public synchronized StreamWork mark(NativeStream stream) {
        recycle();
        NativeEvent event = null;
        // With the host engine, work in the default stream was done when its call returned.
        if (device.isCuda() || stream.handle != 0) {
            event = events.isEmpty() ? new NativeEvent(device, false) : events.pop();
            boolean recorded = false;
            try {
                event.recordUntracked(stream);
                recorded = true;
            } finally {
                if (!recorded) {
                    events.push(event);
                }
            }
        }
        StreamWork work = new StreamWork(
                core, this::free, event, stream.handle, core.operationLog().last());
        if (event != null) {
            pending.add(work);
        }
        return work;
    }

    /** Checks all pending work before the communicator is revoked or aborted. */
    public synchronized void pollPending() {
        try {
            if (own != null) {
                // Marks the operations in it as done.
                own.isDone();
            }
        } catch (RuntimeException failed) {
            // They are lost with the communicator.
        }
        for (StreamWork work : pending) {
            try {
                work.isOver();
            } catch (RuntimeException failed) {
                // The work is lost with the communicator.
            }
        }
    }

    /** Returns work that has been pending for longer than a limit, or null. For the watchdog. */
    public synchronized StreamWork overdue(long now, long limit) {
        int polled = 0;
        for (StreamWork work : pending) {
            if (work.isOverdue(now, limit)) {
                return work;
            }
            if (++polled == POLLED_AT_ONCE) {
                // The oldest work comes first, and threads that add work wait for this lock.
                break;
            }
        }
        return null;
    }

    private void recycle() {
        while (!pending.isEmpty() && pending.peek().isOver()) {
            pending.poll();
        }
    }

    /** Returns an event whose work is done to the free events. */
    private synchronized void free(NativeEvent event) {
        if (closed) {
            event.close();
        } else {
            events.push(event);
        }
    }

    /** Closes stream and events. The native communicator is gone: pending work is done or lost. */
    public synchronized void close() {
        RuntimeException problem = null;
        closed = true;
        while (!pending.isEmpty()) {
            problem = attempt(problem, pending.poll()::end);
        }
        while (!events.isEmpty()) {
            problem = attempt(problem, events.pop()::close);
        }
        if (own != null) {
            problem = attempt(problem, order::close);
            problem = attempt(problem, own::close);
        }
        Suppressed.rethrow(problem);
    }

    private static RuntimeException attempt(RuntimeException earlier, Runnable action) {
        try {
            action.run();
            return earlier;
        } catch (RuntimeException e) {
            return Suppressed.first(earlier, e);
        }
    }
}
