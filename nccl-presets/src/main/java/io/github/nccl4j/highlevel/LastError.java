package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.Engine;
import java.util.List;

/**
 * What the library says of a failure: its last error, as far as that belongs to the failure. NCCL has one text for the whole
 * process, writes it with every warning and never clears it. So a text is not quoted that was there before the failure began,
 * or that a failure of another communicator has quoted.
 *
 * <p>All methods may be called from any thread.
 */
final class LastError {
    /** How long before a failure without a communicator its call may have begun. */
    static final long LONGEST_CALL_MILLIS = 5_000;

    private static final LastError PROCESS = new LastError();

    /** The host engine has a text for each thread and communicator. */
    private static final ThreadLocal<LastError> THREAD = ThreadLocal.withInitial(LastError::new);

    private String text = "";
    private long firstSeen;
    private long communicator;
    private String call = "";

    LastError() {}

    /**
     * What a failure quotes.
     *
     * @param lastError NCCL's text, or empty
     * @param warnings lines of NCCL's log
     */
    record Messages(String lastError, List<NcclLog.Line> warnings) {
        static final Messages NOTHING = new Messages("", List.of());
    }

    private static LastError of(NcclLibrary library) {
        return library.engine() == Engine.HOST ? THREAD.get() : PROCESS;
    }

    /** Takes note of the text while nothing has failed. */
    static void observe(NcclLibrary library) {
        of(library).update(library.lastError(0), System.currentTimeMillis());
    }

    /** As {@link #observe(NcclLibrary)}, for a thread that makes no calls of its own. */
    static void observeProcess() {
        if (NcclLibrary.isLoaded() && NcclLibrary.get().engine() != Engine.HOST) {
            observe(NcclLibrary.get());
        }
    }

    /** As {@link #quote(String, long, long, long, String)}, now. */
    static String quote(NcclLibrary library, String text, long began, long communicator, String call) {
        return of(library).quote(text, System.currentTimeMillis(), began, communicator, call);
    }

    /** Takes note of a text; true if it is another one than before. */
    synchronized boolean update(String now, long time) {
        if (now.equals(text)) {
            return false;
        }
        text = now;
        firstSeen = time;
        communicator = 0;
        call = "";
        return true;
    }

    /**
     * The text, or empty if it belongs to something else.
     *
     * @param now the text
     * @param time the time, in milliseconds
     * @param began when what has failed was called
     * @param of the communicator's handle, or 0
     * @param failed the call that returned an error, and the error; null if none did. When it fails again in the same way, its
     *     text cannot be told from that of the last time, and is quoted again.
     */
    synchronized String quote(String now, long time, long began, long of, String failed) {
        boolean isNew = update(now, time);
        boolean again = failed != null && failed.equals(call);
        boolean ofOther = communicator != 0 && communicator != of || LogParser.namesAnother(now, of);
        if (!again && (ofOther || !isNew && firstSeen <= began)) {
            return "";
        }
        communicator = of;
        call = failed == null ? call : failed;
        return now;
    }
}
