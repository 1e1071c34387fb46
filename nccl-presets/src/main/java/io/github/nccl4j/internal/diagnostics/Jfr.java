package io.github.nccl4j.internal.diagnostics;

import io.github.nccl4j.internal.threads.SlowPath;

/**
 * State of JDK Flight Recorder: events are created only during a recording. A runtime may lack the module, so its
 * classes are used only in {@link JfrEvents}, which is loaded only if they exist.
 */
public final class Jfr {
    /** True during a recording. Not volatile: readers may see changes late. */
    public static boolean recording;

    static {
        try {
            JfrEvents.listen();
        } catch (LinkageError absent) {
            // A runtime without the module jdk.jfr.
            recording = false;
        }
    }

    private Jfr() {}

    /** Registers the listener, by initialising this class. */
    public static void initialize() {}

    public static synchronized void set(boolean now) {
        if (now != recording) {
            recording = now;
            if (now) {
                SlowPath.begin();
            } else {
                SlowPath.end();
            }
        }
    }
}
