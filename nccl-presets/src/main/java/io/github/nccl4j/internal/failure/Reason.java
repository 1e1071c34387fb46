package io.github.nccl4j.internal.failure;

/**
 * Reasons to give up a call or work that another rank may keep from ending. If several apply, the first one counts: an
 * interrupt is what the program wants, and a lost rank explains a missed deadline.
 *
 * <table>
 * <caption>How each is found, and what it does</caption>
 * <tr><th>reason</th><th>found by</th><th>exception</th><th>the communicator</th></tr>
 * <tr><td>INTERRUPTED</td><td>the status of the thread</td><td>NcclInterruptedException</td><td>is aborted</td></tr>
 * <tr><td>RANK_LOST</td><td>the store</td><td>NcclRemoteException</td><td>as its policy says</td></tr>
 * <tr><td>LATE</td><td>the deadline</td><td>NcclTimeoutException</td><td>as its policy says</td></tr>
 * </table>
 *
 * <p>An error that NCCL returns needs no reason: its code has the exception.
 */
public enum Reason {
    INTERRUPTED,
    RANK_LOST,
    LATE;

    /** Returns the reason of a thread that waits no longer. */
    public static Reason of(boolean interrupted, boolean rankLost) {
        return interrupted ? INTERRUPTED : rankLost ? RANK_LOST : LATE;
    }
}
