package io.github.nccl4j.highlevel;

/**
 * Whether JDK Flight Recorder records, and so wants events. A runtime may lack it: what names its classes is in {@link
 * JfrEvents}, which is loaded only where they are.
 */
final class Jfr {
    /** Plain: a hot path looks at it, and need not see a change at once. */
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
}
