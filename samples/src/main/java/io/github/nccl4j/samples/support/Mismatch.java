package io.github.nccl4j.samples.support;

/**
 * Wrong elements of a buffer.
 *
 * @param count how many are wrong
 * @param index the index of the first one, -1 if there is none
 * @param expected what the first one should be
 * @param got what it is
 */
public record Mismatch(long count, long index, float expected, float got) {

    /** Nothing is wrong. */
    public static final Mismatch NONE = new Mismatch(0, -1, 0, 0);

    /** {@return whether every element is right} */
    public boolean none() {
        return count == 0;
    }

    Mismatch and(Mismatch later) {
        if (none()) {
            return later;
        }
        return new Mismatch(count + later.count, index, expected, got);
    }
}
