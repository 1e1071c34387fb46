package io.github.nccl4j.highlevel;

/**
 * True if JDK Flight Recorder records, and so wants events. A runtime may lack it: what names its classes is in {@link
 * JfrEvents}, which is loaded only where they are.
 */
final class Jfr {
    /** Plain: who looks at it need not see a change at once. */
    static boolean recording;

    static {
        try {
            JfrEvents.listen();
        } catch (LinkageError absent) {
            // A runtime without the module jdk.jfr.
            recording = false;
        }
    }

    private Jfr() {}

    /** Looks from now on, if that was not begun before. */
    static void look() {}

    static synchronized void set(boolean now) {
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
