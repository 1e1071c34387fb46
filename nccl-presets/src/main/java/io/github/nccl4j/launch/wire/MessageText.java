package io.github.nccl4j.launch.wire;

import java.util.List;
import java.util.stream.Collectors;

/** Text of ranks, times and exceptions for messages. */
public final class MessageText {
    private static final int MAX_NAMED = 16;

    private MessageText() {}

    /** "rank 3", "ranks 3, 5", "ranks 1, 2, ..., and 4070 more" */
    public static String ranks(List<Integer> ranks) {
        String named = ranks.stream().limit(MAX_NAMED).map(String::valueOf).collect(Collectors.joining(", "));
        return (ranks.size() == 1 ? "rank " : "ranks ")
                + named
                + (ranks.size() > MAX_NAMED ? ", and " + (ranks.size() - MAX_NAMED) + " more" : "");
    }

    /** A time in seconds, cut to milliseconds: "0.7 s" */
    public static String seconds(long nanoseconds) {
        long milliseconds = nanoseconds / 1_000_000;
        return milliseconds % 1000 == 0 ? milliseconds / 1000 + " s" : milliseconds / 1000.0 + " s";
    }

    /** The message of an exception, or its class name if it has no message. */
    public static String reason(Throwable failure) {
        return failure.getMessage() == null ? failure.toString() : failure.getMessage();
    }
}
