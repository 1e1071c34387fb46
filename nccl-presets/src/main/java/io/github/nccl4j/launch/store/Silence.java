package io.github.nccl4j.launch.store;

/**
 * The silence of the other end of a connection, which regular checks count. Only the time up to the moment at which a check was
 * due counts: if the thread of the checks gets no processor, or its process is stopped, the other end is not silent, and what it
 * sent meanwhile has yet to be read. {@link #check} and {@link #end} are called in the thread of the loop.
 */
final class Silence {
    /** The time from which the silence counts, of the clock of the loop. */
    private volatile long since;

    /** The other end was heard: the silence begins anew. */
    void end(long now) {
        since = now;
    }

    /**
     * Returns the counted silence, in nanoseconds.
     *
     * @param due the time at which this check was due, of the clock of the loop
     * @param now the time
     */
    long check(long due, long now) {
        long start = since;
        // Differences, because the time may wrap.
        since = due - start > 0 ? start + Math.max(0, now - due) : now;
        return now - since;
    }

    /** Nanoseconds from the time from which the silence counts, to a later time. From any thread. */
    long nanos(long now) {
        return now - since;
    }
}
