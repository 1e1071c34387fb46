package io.github.nccl4j.samples.support;

/** The ranks could not meet; the message says who was missing or what did not agree. */
public final class RendezvousException extends RuntimeException {

    private static final long serialVersionUID = 1;

    RendezvousException(String message) {
        super(message);
    }

    RendezvousException(String message, Throwable cause) {
        super(message, cause);
    }
}
