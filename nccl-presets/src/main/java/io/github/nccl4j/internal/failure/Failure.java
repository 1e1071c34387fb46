package io.github.nccl4j.internal.failure;

import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclLog;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.internal.threads.Timeouts;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;

/**
 * Description of a failed call.
 *
 * @param result the result of the call
 * @param limit the timeout that was exceeded, or null
 * @param lastError NCCL's text, or empty
 * @param warnings the last lines of NCCL's log
 * @param tail further text for the message, or empty
 */
public record Failure(
        Result result,
        Duration limit,
        Call call,
        Ranks ranks,
        String lastError,
        List<NcclLog.Line> warnings,
        String tail) {
    /**
     * The call.
     *
     * @param function the C function
     * @param description the call with its arguments: "ncclSend of 1024 float32 to rank 3"
     * @param rank the rank that made the call, or -1
     * @param communicatorName the communicator's name, or empty
     * @param communicatorId the communicator's id, or empty
     * @param library the library
     */
    public record Call(
            String function,
            String description,
            int rank,
            String communicatorName,
            String communicatorId,
            Library library) {}

    /**
     * The library that was called.
     *
     * @param path its path
     * @param versionCode the code from {@code ncclGetVersion}
     * @param text the library in words
     */
    public record Library(String path, int versionCode, String text) {}

    /**
     * The other ranks.
     *
     * @param positions their positions, in sentences without the last period; or empty
     * @param silent the ranks that were asked and did not answer
     * @param lost the ranks that the store reports as lost
     */
    public record Ranks(String positions, List<Integer> silent, List<Integer> lost) {}

    private static Function<Failure, NcclException> exceptions;
    private static WarningsOf log;

    /** The warnings in the library's log, as {@link #warnings(int, String, long, long)}. */
    @FunctionalInterface
    public interface WarningsOf {
        List<NcclLog.Line> find(int rank, String communicatorName, long communicator, long began);
    }

    /** Connects failures with classes of highlevel, which keep their constructor and their log to themselves. */
    public static void connect(Function<Failure, NcclException> constructor, WarningsOf ofLog) {
        exceptions = constructor;
        log = ofLog;
    }

    /** The library's warnings about a rank or a communicator since a time in milliseconds; none unless the log is read. */
    public static List<NcclLog.Line> warnings(int rank, String communicatorName, long communicator, long began) {
        return log.find(rank, communicatorName, communicator, began);
    }

    NcclException toException() {
        return exceptions.apply(this);
    }

    public String message() {
        StringBuilder text = new StringBuilder(
                limit == null
                        ? call.description + " failed"
                        : "Timed out after " + Timeouts.text(limit) + " in " + call.description);
        if (call.rank >= 0) {
            text.append(" at rank ").append(call.rank);
        }
        if (!call.communicatorName.isEmpty()) {
            text.append(" of communicator '").append(call.communicatorName).append('\'');
        } else if (!call.communicatorId.isEmpty()) {
            text.append(" of communicator ").append(call.communicatorId);
        }
        if (limit == null) {
            text.append(": ").append(result).append(", ").append(result.meaning());
        }
        text.append('.');
        if (!ranks.positions.isEmpty()) {
            text.append(' ').append(ranks.positions).append('.');
        }
        if (!lastError.isEmpty()) {
            text.append(" NCCL says: ").append(lastError);
        }
        text.append(" [").append(call.library.text).append("]\n").append(result.advice());
        // NCCL's last error is quoted above.
        warnings.stream()
                .filter(warning -> !warning.text().equals(lastError))
                .forEach(warning -> text.append("\nNCCL warned: ").append(warning));
        if (!tail.isEmpty()) {
            text.append('\n').append(tail);
        }
        return text.toString();
    }
}
