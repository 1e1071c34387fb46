package io.github.nccl4j.extensions;

import java.util.function.LongConsumer;

/**
 * A part of a tensor: a range in each dimension. Its elements are stored in row-major order.
 *
 * <p>Immutable; the arrays are not copied.
 *
 * @param starts the first index in each dimension
 * @param lengths the number of indices in each dimension
 */
record Box(long[] starts, long[] lengths) {
    long elements() {
        long elements = 1;
        for (long length : lengths) {
            elements *= length;
        }
        return elements;
    }

    /** The elements that both boxes have. */
    Box intersection(Box other) {
        long[] start = new long[starts.length];
        long[] length = new long[starts.length];
        for (int i = 0; i < starts.length; i++) {
            start[i] = Math.max(starts[i], other.starts[i]);
            long end = Math.min(starts[i] + lengths[i], other.starts[i] + other.lengths[i]);
            length[i] = Math.max(0, end - start[i]);
        }
        return new Box(start, length);
    }

    /** The number of elements of this box that follow each other in an outer box, wherever a run of them begins. */
    long runLength(Box outer) {
        long run = 1;
        for (int i = starts.length - 1; i >= 0; i--) {
            run *= lengths[i];
            if (lengths[i] != outer.lengths[i]) {
                break;
            }
        }
        return run;
    }

    /**
     * Calls an action with the position in an outer box of each run of this box, in order.
     *
     * @param outer a box that contains this one
     * @param run the length of a run: that of {@link #runLength}, or a part of it that is a product of last lengths
     */
    void forEachRun(Box outer, long run, LongConsumer action) {
        long elements = elements();
        for (long at = 0; at < elements; at += run) {
            action.accept(outer.position(starts, lengths, at));
        }
    }

    /** The position in this box of an element of an inner box, given by its position there. */
    private long position(long[] innerStarts, long[] innerLengths, long inner) {
        long position = 0;
        long stride = 1;
        long rest = inner;
        for (int i = starts.length - 1; i >= 0; i--) {
            position += (innerStarts[i] - starts[i] + rest % innerLengths[i]) * stride;
            rest /= innerLengths[i];
            stride *= lengths[i];
        }
        return position;
    }
}
