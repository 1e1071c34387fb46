package io.github.nccl4j.tools.support;

/**
 * The wrong elements of a buffer. Immutable.
 *
 * @param count the number of wrong elements
 * @param index the index of the first wrong element, or -1
 * @param expected the expected value of the first wrong element
 * @param got the actual value of the first wrong element
 */
public record Mismatch(long count, long index, float expected, float got) {

    /** No wrong elements. */
    public static final Mismatch NONE = new Mismatch(0, -1, 0, 0);

    /** {@return true if every element is right} */
    public boolean isEmpty() {
        return count == 0;
    }

    /** Combines this with the mismatch of a later part of the buffer. */
    Mismatch and(Mismatch later) {
        if (isEmpty()) {
            return later;
        }
        return new Mismatch(count + later.count, index, expected, got);
    }
}
