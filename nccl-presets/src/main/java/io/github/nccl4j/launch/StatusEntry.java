package io.github.nccl4j.launch;

/**
 * A text in the status of this rank, which {@link Rendezvous#status} adds.
 *
 * <p><b>Threads.</b> All methods may be called from any thread.
 *
 * @since 0.1
 */
public interface StatusEntry extends AutoCloseable {
    /** Removes the text. Closing again does nothing. */
    @Override
    void close();
}
