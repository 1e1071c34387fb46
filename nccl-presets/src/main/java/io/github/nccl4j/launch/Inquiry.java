package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.Map;

/**
 * A question to all ranks. A background thread of each rank answers, even while the rank's other threads are blocked.
 * For example, ranks can be asked for their current operation when a collective call hangs. {@link Rendezvous#inquiry}
 * creates inquiries.
 *
 * <p><b>Threads.</b> All methods may be called from any thread.
 *
 * @since 0.1
 */
public interface Inquiry extends AutoCloseable {

    /**
     * Asks all ranks, including this one. Not collective. Ranks that ask at the same time, or within two seconds, get the same
     * answers. The call does not wait for ranks whose connection to the store has ended.
     *
     * @param timeout the time to wait for answers; the call may take half a second longer
     * @return the answers by rank; ranks that are stopped, are lost, or have not opened this inquiry have none
     * @throws RendezvousTimeoutException if the store does not respond in time, in which case {@link
     *     RendezvousTimeoutException#missing} contains rank 0 of the store if this inquiry includes it; or if the rank that
     *     collects the answers was lost meanwhile
     * @throws RendezvousException if the connection to the store is lost, or this thread is interrupted
     * @throws IllegalStateException if this inquiry or the store is closed
     * @throws IllegalArgumentException if the timeout is negative
     */
    Map<Integer, byte[]> ask(Duration timeout);

    /** Stops this rank's answers. Does not wait. Closing again does nothing. */
    @Override
    void close();
}
