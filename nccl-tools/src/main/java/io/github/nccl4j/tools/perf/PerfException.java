package io.github.nccl4j.tools.perf;

/** Thrown if a measurement is impossible or has failed; the message contains the reason. */
final class PerfException extends RuntimeException {
    private static final long serialVersionUID = 1;

    PerfException(String message) {
        super(message);
    }
}
