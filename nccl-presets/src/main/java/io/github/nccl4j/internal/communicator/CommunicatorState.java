package io.github.nccl4j.internal.communicator;

import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/** The state of a native communicator. The API documents its constants. */
public enum CommunicatorState {
    PENDING("is pending: it can be used when its group has been launched"),
    OPEN("is open"),
    SUSPENDED("is suspended: resume it first"),
    REVOKED("was revoked: it can be split, shrunk, closed or aborted"),
    FINISHED("was finished: it can be closed or aborted"),
    FAILED("has an abandoned call: it can be closed or aborted, with the same effect"),
    ABORTED("was aborted"),
    CLOSED("is closed");

    private final String text;

    CommunicatorState(String text) {
        this.text = text;
    }

    /** The state in words, after the name of a communicator. */
    String text() {
        return text;
    }

    boolean hasEnded() {
        return this == ABORTED || this == CLOSED;
    }

    /** Returns true if a failure leads to this state. */
    boolean isFailure() {
        return this == REVOKED || this == FAILED || this == ABORTED;
    }

    /** "be open or suspended", or "not be aborted or closed" for many states. */
    static String words(Set<CommunicatorState> allowed) {
        Set<CommunicatorState> others = EnumSet.complementOf(EnumSet.copyOf(allowed));
        boolean few = allowed.size() <= others.size();
        return (few ? "be " : "not be ")
                + (few ? allowed : others)
                        .stream()
                                .map(one -> one.name().toLowerCase(Locale.ROOT))
                                .collect(Collectors.joining(" or "));
    }
}
