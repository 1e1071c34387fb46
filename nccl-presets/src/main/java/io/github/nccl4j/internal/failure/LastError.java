package io.github.nccl4j.internal.failure;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLog;
import io.github.nccl4j.internal.log.LogParser;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.util.List;

/**
 * The last-error text of the library, if the text belongs to a failure. NCCL has one text for the whole process, writes
 * it with every warning and never clears it. Therefore a text is not quoted if it existed before the failed call began,
 * or if a failure of another communicator has quoted it.
 *
 * <p>All methods may be called from any thread.
 */
public final class LastError {
    /** Assumed longest duration, in milliseconds, of a call that belongs to no communicator. */
    static final long LONGEST_CALL_MILLIS = 5_000;

    private static final LastError PROCESS = new LastError();

    /** The host engine has one text per thread and communicator. */
    private static final ThreadLocal<LastError> THREAD = ThreadLocal.withInitial(LastError::new);

    private String text = "";
    private long firstSeen;
    private long communicator;
    private String call = "";

    public LastError() {}

    /**
     * Messages of the library that belong to a failure.
     *
     * @param lastError NCCL's text, or empty
     * @param warnings lines of NCCL's log
     */
    public record Messages(String lastError, List<NcclLog.Line> warnings) {
        public static final Messages NOTHING = new Messages("", List.of());
    }

    /**
     * Returns the library's last error of a communicator, or of all communicators for 0; empty if no call of the program
     * caused one. The call that determines VCCL's form of ncclAlltoAllv leaves an error, which is removed here.
     */
    public static String current(long communicator) {
        String lastError = NativeLibrary.provides("ncclGetLastError") ? nccl.ncclGetLastError(communicator) : null;
        String text = lastError == null ? "" : lastError.strip();
        boolean isOurs = text.contains("corrupted comm object")
                && NativeLibrary.engine() == Engine.NCCL
                && NativeLibrary.isVccl()
                && NativeLibrary.provides("ncclAlltoAllv");
        return isOurs ? "" : text;
    }

    private static LastError of(NcclLibrary library) {
        return library.engine() == Engine.HOST ? THREAD.get() : PROCESS;
    }

    /** Records the current text while no call has failed. */
    public static void observe(NcclLibrary library) {
        of(library).update(current(0), System.currentTimeMillis());
    }

    /** As {@link #observe(NcclLibrary)}, for a thread that makes no calls of its own. */
    public static void observeProcess() {
        if (NcclLibrary.isLoaded() && NcclLibrary.get().engine() != Engine.HOST) {
            observe(NcclLibrary.get());
        }
    }

    /** As {@link #quote(String, long, long, long, String)}, now. */
    public static String quote(NcclLibrary library, String text, long began, long communicator, String call) {
        return of(library).quote(text, System.currentTimeMillis(), began, communicator, call);
    }

    /** Records a text; returns true if it differs from the previous one. */
    public synchronized boolean update(String now, long time) {
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
     * Returns the text, or an empty text if it belongs to another failure.
     *
     * @param now the current text
     * @param time the current time, in milliseconds since 1970
     * @param began the start of the failed call, in milliseconds since 1970
     * @param of the communicator's handle, or 0
     * @param failed the call that returned an error, and the error; null if none did. If the same call fails again in
     *     the same way, its text cannot be told from the previous one and is quoted again.
     */
    public synchronized String quote(String now, long time, long began, long of, String failed) {
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
