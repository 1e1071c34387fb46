package io.github.nccl4j.internal.memory;

import java.lang.System.Logger.Level;
import java.lang.ref.Cleaner;

/**
 * Reports objects that were dropped without being closed, with the stack of their creation: communicators always, other
 * objects with {@code -Dnccl4j.leaks=true}. Never frees anything, because the garbage collector can't know whether a
 * device still uses an object, and other ranks have to take part.
 */
public final class Leaks {
    private static final boolean ON = Boolean.getBoolean("nccl4j.leaks");

    private Leaks() {}

    /** Data of a watched object for the report. */
    private static final class Record implements Runnable {
        private final String what;
        private final Throwable creation;
        private volatile boolean closed;

        Record(String what, Throwable creation) {
            this.what = what;
            this.creation = creation;
        }

        @Override
        public void run() {
            if (!closed) {
                System.getLogger("io.github.nccl4j")
                        .log(
                                Level.WARNING,
                                what + " was dropped without being closed; its resources are lost",
                                creation);
            }
        }
    }

    /** A watched object. */
    public static final class Watch {
        private static final Cleaner CLEANER = Cleaner.create();
        private final Record record;
        private final Cleaner.Cleanable cleanable;

        private Watch(Object object, String what, Throwable creation) {
            record = new Record(what, creation);
            cleanable = CLEANER.register(object, record);
        }
    }

    /** Watches an object that must be closed; returns null if leak reports are off. */
    static Watch watch(Object object, String what) {
        return ON ? new Watch(object, what, new Throwable("created here")) : null;
    }

    /** As {@link #watch}, regardless of the setting: for rare objects for which other ranks wait. */
    public static Watch watchAlways(Object object, String what, Throwable creation) {
        return new Watch(object, what, creation);
    }

    /** Ends the watch, because the object was closed. */
    public static void endWatch(Watch watch) {
        if (watch != null) {
            watch.record.closed = true;
            watch.cleanable.clean();
        }
    }
}
