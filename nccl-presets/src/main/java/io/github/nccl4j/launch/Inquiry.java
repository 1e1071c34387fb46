package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.Map;

/**
 * A question that ranks answer whatever their threads are doing: what they are at, when one waits for the others in vain, for
 * example. Made by {@link Rendezvous#inquiry}.
 *
 * <p><b>Threads.</b> All methods may be called from any thread.
 */
public interface Inquiry extends AutoCloseable {

    /**
     * Asks all ranks, this one too. Not collective. Several ranks that ask at the same time, or soon after each other, get the
     * same answers. Ranks whose connection to the store has ended are not waited for.
     *
     * @param patience how long to wait for answers; the call may take half a second longer
     * @return the answers by rank; a rank that is stopped, lost, or has no such inquiry open, is not there
     * @throws RendezvousTimeoutException if the store does not answer in time; it names the rank where that is, if it is one of
     *     these; or if the rank that collects the answers for all was lost meanwhile
     * @throws RendezvousException if the store can't be reached any more, or this thread is interrupted
     * @throws IllegalStateException if this or the store is closed
     * @throws IllegalArgumentException if the patience is negative
     */
    Map<Integer, byte[]> ask(Duration patience);

    /** This rank answers no more. Does not wait, and does nothing if it is closed. */
    @Override
    void close();
}
