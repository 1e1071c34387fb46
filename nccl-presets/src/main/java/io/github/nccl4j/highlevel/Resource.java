package io.github.nccl4j.highlevel;

import java.util.concurrent.atomic.AtomicReference;

/**
 * A native thing of a communicator, and what it keeps alive. It is destroyed when it is closed, or, if an open group still
 * needs it, when that has ended; else with its communicator. What it keeps is released when it was destroyed, or when the
 * native communicator is gone: a thing that could not be destroyed may still be used until then.
 */
final class Resource implements AutoCloseable {
    private final CommunicatorCore core;
    private final Lifetime lifetime;
    private final Runnable destroy;
    private final AtomicReference<Runnable> release;

    /**
     * A resource, owned by its communicator from now on.
     *
     * @param what it is, for messages
     * @param destroy makes the C call; done by a thread that has the communicator for itself
     * @param release gives up what is kept alive
     */
    Resource(CommunicatorCore core, Object what, Runnable destroy, Runnable release) {
        this.core = core;
        this.destroy = destroy;
        this.release = new AtomicReference<>(release);
        lifetime = new Lifetime(what);
        lifetime.watch(what, what.toString());
        core.own(this);
    }

    boolean isOpen() {
        return lifetime.isOpen();
    }

    void check() {
        lifetime.check();
    }

    void pin() {
        lifetime.pin();
    }

    void unpin() {
        lifetime.unpin();
    }

    @Override
    public void close() {
        if (lifetime.isOpen()) {
            core.alone(() -> {
                core.requireNotSuspended();
                lifetime.close(this::free);
            });
        }
    }

    private void free() {
        if (core.mayNeverEnd()) {
            // It goes with the communicator, which will be aborted.
            return;
        }
        core.alone(() -> {
            if (!core.hasEnded()) {
                destroy.run();
            }
        });
        cancel();
    }

    /** There is nothing to destroy any more, or nothing came to be. */
    void cancel() {
        core.disown(this);
        abandon();
    }

    /** It can't be used any more, but keeps what it keeps until the native communicator is gone. */
    void giveUp() {
        lifetime.close(() -> {});
    }

    /** The native communicator is gone, and this with it: nothing may be called for it any more. */
    void abandon() {
        giveUp();
        Runnable once = release.getAndSet(null);
        if (once != null) {
            once.run();
        }
    }
}
