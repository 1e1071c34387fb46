package io.github.nccl4j.highlevel;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The stream that a communicator has of its own, and the events by which its work is waited for. Events are used again
 * when their work is done, and all are closed with the communicator.
 */
final class Streams {
    private static final int LOOKED_AT = 64;

    private final Communicator communicator;
    private CudaStream own;
    private CudaEvent order;
    /** Free events. */
    private final Deque<CudaEvent> events = new ArrayDeque<>();
    /** Work that was not seen to be done, the oldest first. */
    private final Deque<Work> pending = new ArrayDeque<>();

    private boolean closed;

    Streams(Communicator communicator) {
        this.communicator = communicator;
    }

    synchronized CudaStream own() {
        if (own == null) {
            own = CudaStream.nonBlocking(communicator.device());
            order = CudaEvent.create(communicator.device());
        }
        return own;
    }

    synchronized void letDefaultStreamWait() {
        order(own(), CudaStream.defaultOf(communicator.device()));
    }

    synchronized void waitForDefaultStream() {
        order(CudaStream.defaultOf(communicator.device()), own());
    }

    private void order(CudaStream first, CudaStream then) {
        order.record(first);
        then.waitFor(order);
    }

    /** Marks the end of the work that is in a stream now. */
    synchronized Work mark(CudaStream stream, OperationLog.Entry last) {
        recycle();
        CudaEvent event = null;
        // With the host engine, work in the default stream was done when its call returned.
        if (communicator.device().isCuda() || stream.handle != 0) {
            event = events.isEmpty() ? CudaEvent.create(communicator.device()) : events.pop();
            boolean recorded = false;
            try {
                event.record(stream);
                recorded = true;
            } finally {
                if (!recorded) {
                    events.push(event);
                }
            }
        }
        Work work = new Work(communicator, this, event, stream.handle, last);
        if (event != null) {
            pending.add(work);
        }
        return work;
    }

    /** Asks all work whether it is done: the communicator is about to be aborted. */
    synchronized void look() {
        for (Work work : pending) {
            try {
                work.isDone();
            } catch (RuntimeException failed) {
                // It will be lost.
            }
        }
    }

    /** For the watchdog: work that has been pending for longer than a limit, else null. */
    synchronized Work overdue(long now, long limit) {
        int asked = 0;
        for (Work work : pending) {
            if (work.isOverdue(now, limit)) {
                return work;
            }
            if (++asked == LOOKED_AT) {
                // The oldest come first, and who adds more waits meanwhile.
                break;
            }
        }
        return null;
    }

    private void recycle() {
        while (!pending.isEmpty() && pending.peek().isDone()) {
            pending.poll();
        }
    }

    /** An event whose work is done. */
    synchronized void free(CudaEvent event) {
        if (closed) {
            event.close();
        } else {
            events.push(event);
        }
    }

    /** The native communicator is gone, and what was pending is done or will never be. */
    synchronized void close() {
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
