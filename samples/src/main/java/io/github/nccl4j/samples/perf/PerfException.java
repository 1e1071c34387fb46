package io.github.nccl4j.samples.perf;

/** A measurement can't be made or has failed, for a reason that the message tells. */
final class PerfException extends RuntimeException {
    private static final long serialVersionUID = 1;

    PerfException(String message) {
        super(message);
    }
}
