package io.github.nccl4j.launch;

import java.util.List;
import java.util.stream.Collectors;

/** Words for messages. */
final class Ranks {
    private static final int MOST_NAMED = 16;

    private Ranks() {}

    /** "rank 3", "ranks 3, 5", "ranks 1, 2, ..., and 4070 more" */
    static String text(List<Integer> ranks) {
        String named = ranks.stream().limit(MOST_NAMED).map(String::valueOf).collect(Collectors.joining(", "));
        return (ranks.size() == 1 ? "rank " : "ranks ")
                + named
                + (ranks.size() > MOST_NAMED ? ", and " + (ranks.size() - MOST_NAMED) + " more" : "");
    }

    /** A time in seconds: "0.7 s" */
    static String seconds(long nanoseconds) {
        long milliseconds = nanoseconds / 1_000_000;
        return milliseconds % 1000 == 0 ? milliseconds / 1000 + " s" : milliseconds / 1000.0 + " s";
    }
}
