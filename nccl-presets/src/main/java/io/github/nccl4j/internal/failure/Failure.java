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
 * @param operation the C function
 * @param description the call with its arguments: "ncclSend of 1024 float32 to rank 3"
 * @param limit the timeout that was exceeded, or null
 * @param rank the rank that made the call, or -1
 * @param communicatorName the communicator's name, or empty
 * @param communicatorId the communicator's id, or empty
 * @param libraryPath the path of the library
 * @param versionCode the code from {@code ncclGetVersion}
 * @param library the library in words
 * @param lastError NCCL's text, or empty
 * @param warnings the last lines of NCCL's log
 * @param ranks the positions of other ranks, in sentences without the last period; or empty
 * @param tail further text for the message, or empty
 * @param silent the ranks that were asked and did not answer
 * @param lost the ranks that the store reports as lost
 */
public record Failure(
        Result result,
        String operation,
        String description,
        Duration limit,
        int rank,
        String communicatorName,
        String communicatorId,
        String libraryPath,
        int versionCode,
        String library,
        String lastError,
        List<NcclLog.Line> warnings,
        String ranks,
        String tail,
        List<Integer> silent,
        List<Integer> lost) {
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
                        ? description + " failed"
                        : "Timed out after " + Timeouts.text(limit) + " in " + description);
        if (rank >= 0) {
            text.append(" at rank ").append(rank);
        }
        if (!communicatorName.isEmpty()) {
            text.append(" of communicator '").append(communicatorName).append('\'');
        } else if (!communicatorId.isEmpty()) {
            text.append(" of communicator ").append(communicatorId);
        }
        if (limit == null) {
            text.append(": ").append(result).append(", ").append(result.meaning());
        }
        text.append('.');
        if (!ranks.isEmpty()) {
            text.append(' ').append(ranks).append('.');
        }
        if (!lastError.isEmpty()) {
            text.append(" NCCL says: ").append(lastError);
        }
        text.append(" [").append(library).append("]\n").append(result.advice());
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
