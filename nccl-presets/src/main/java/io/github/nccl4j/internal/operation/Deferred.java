package io.github.nccl4j.internal.operation;

import io.github.nccl4j.internal.threads.Gate;

/** A call within a group that has results after the launch of the group. */
public interface Deferred {
    /** True if the C call waits for other ranks and therefore needs a deadline. */
    default boolean waitsForOtherRanks() {
        return true;
    }

    /** Makes a C call that must be launched before the group, and returns its result; returns 0 without such a call. */
    default int prepare() {
        return 0;
    }

    /**
     * True if the native group must contain no other operation of the communicator. Such calls precede the other
     * operations.
     */
    default boolean mustBeAlone() {
        return false;
    }

    /**
     * True if the C call must not be made within a native group. Such a call is the only operation of its launch.
     */
    default boolean mustBeUngrouped() {
        return false;
    }

    /** Adds the call to the communicator's record if it is an operation on data. */
    default void record(Gate.Pass pass, int group) {}

    /** The C function, for messages. */
    default String function() {
        return "a call";
    }

    /** Makes the C call, between the start and the end of the native group if there is one. */
    int call();

    /** Called after the group has succeeded. */
    void completed();

    /** Called if the group is discarded, or its launch fails: the call has no results. */
    void discarded();
}
