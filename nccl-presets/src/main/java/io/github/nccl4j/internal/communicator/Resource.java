package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.internal.memory.Lifetime;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Native object of a communicator, and the resources that it keeps alive. It is destroyed when it is closed, or when an
 * open group that uses it has ended; at the latest with its communicator. Its resources are released when it was
 * destroyed, or when the native communicator is gone: an object that could not be destroyed may still be used until
 * then.
 */
public final class Resource implements OwnedResources.Dependent {
    private final CommunicatorCore core;
    private final Lifetime lifetime;
    private final Runnable destroy;
    private final AtomicReference<Runnable> release;

    /**
     * Creates a resource and registers it with its communicator.
     *
     * @param what the object, for messages
     * @param destroy makes the native call; runs in a thread that holds the communicator exclusively
     * @param release releases the resources that are kept alive
     */
    public Resource(CommunicatorCore core, Object what, Runnable destroy, Runnable release) {
        this.core = core;
        this.destroy = destroy;
        this.release = new AtomicReference<>(release);
        lifetime = new Lifetime(what);
        lifetime.watch(what, what.toString());
        core.owned().own(this);
    }

    public boolean isOpen() {
        return lifetime.isOpen();
    }

    public void check() {
        lifetime.check();
    }

    public void pin() {
        lifetime.pin();
    }

    public void unpin() {
        lifetime.unpin();
    }

    @Override
    public void close() {
        if (lifetime.isOpen()) {
            core.calls().alone(() -> {
                core.requireNotSuspended();
                lifetime.close(this::free);
            });
        }
    }

    private void free() {
        if (core.mayNeverEnd()) {
            // The object is freed with the communicator, which will be aborted.
            return;
        }
        core.calls().alone(() -> {
            if (!core.hasEnded()) {
                destroy.run();
            }
        });
        cancel();
    }

    /** Releases the resources of an object that was destroyed or never created. */
    public void cancel() {
        core.owned().disown(this);
        abandon();
    }

    /** Marks the object as closed, but keeps its resources until the native communicator is gone. */
    public void giveUp() {
        lifetime.close(() -> {});
    }

    @Override
    public void abandon() {
        giveUp();
        Runnable once = release.getAndSet(null);
        if (once != null) {
            once.run();
        }
    }
}
