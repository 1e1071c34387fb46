package io.github.nccl4j.highlevel;

/** A call within a group whose results are known when the group has been launched. */
interface Deferred {
    /** Whether the C call waits for other ranks, so that it needs a deadline. */
    default boolean waitsForOtherRanks() {
        return true;
    }

    /** Makes a C call that must be launched before the group; 0 if there is none. */
    default int prepare() {
        return 0;
    }

    /**
     * Whether no other operation of its communicator may be in the native group; then it comes before them.
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

    /** Tells the record of its communicator about an operation on data, if it is one. */
    default void record(Gate.Pass pass, int group) {}

    /** The C function, for messages. */
    default String function() {
        return "a call";
    }

    /** Makes the C call, between the start and the end of the native group if there is one. */
    int call();

    /** The group has ended well. */
    void completed();

    /** The group was given up before or while it was launched: nothing came of the call. */
    void discarded();
}
