package io.github.nccl4j.internal.communicator;

/**
 * Key of a communicator, equal at all its ranks.
 *
 * @param origin the unique id from which it was created, or the first of its ancestors
 * @param text the same in all processes; does not reveal the unique id
 */
public record CommunicatorKey(Object origin, String text) {
    /** Key of communicators whose origin is not known here. */
    public static final CommunicatorKey UNKNOWN = new CommunicatorKey(new Object(), "unknown");

    /** The key of a communicator that its ranks derive from this one, all by the same call, with the same color. */
    public CommunicatorKey child(int call, int color) {
        return isKnown() ? new CommunicatorKey(origin, text + "." + call + "." + color) : this;
    }

    public boolean isKnown() {
        return this != UNKNOWN;
    }
}
