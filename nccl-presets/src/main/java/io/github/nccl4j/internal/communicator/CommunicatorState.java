package io.github.nccl4j.internal.communicator;

/** The state of a native communicator. The API documents its constants. */
public enum CommunicatorState {
    PENDING,
    OPEN,
    SUSPENDED,
    REVOKED,
    FINISHED,
    FAILED,
    ABORTED,
    CLOSED
}
