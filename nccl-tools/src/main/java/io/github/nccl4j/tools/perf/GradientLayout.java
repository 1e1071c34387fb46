package io.github.nccl4j.tools.perf;

import java.util.ArrayList;
import java.util.List;

/**
 * The gradients of a model in the order in which a backward pass yields them, the last layer first, as numbers of elements.
 * Immutable.
 */
record GradientLayout(List<Long> lengths) {
    private static final int LAYERS = 32;
    /** The width of a model with 7 billion parameters. */
    static final int FULL_WIDTH = 4096;

    private static final int FULL_INNER = 11008;

    /** A part of the gradients that travels together: the indices {@code first} to {@code end - 1}. */
    record Bucket(int first, int end, long length) {}

    /**
     * The gradients of a transformer with 32 layers of five tensors: the projections into and out of the attention, those into
     * and out of the inner layer, and the scales of the normalizations.
     *
     * @param width the width of the model; 4096 gives 6.5 billion elements, and half of the width a quarter of them
     */
    static GradientLayout ofWidth(int width) {
        long inner = (long) width * FULL_INNER / FULL_WIDTH;
        List<Long> layer =
                List.of(2L * width, width * inner, 2 * width * inner, (long) width * width, 3L * width * width);
        List<Long> lengths = new ArrayList<>();
        for (int i = 0; i < LAYERS; i++) {
            lengths.addAll(layer);
        }
        return new GradientLayout(List.copyOf(lengths));
    }

    int count() {
        return lengths.size();
    }

    long total() {
        return lengths.stream().mapToLong(Long::longValue).sum();
    }

    long longest() {
        return lengths.stream().mapToLong(Long::longValue).max().orElse(0);
    }

    /** Buckets of at most {@code most} elements, or of a single gradient that has more. */
    List<Bucket> buckets(long most) {
        List<Bucket> buckets = new ArrayList<>();
        int first = 0;
        long length = 0;
        for (int i = 0; i < count(); i++) {
            if (i > first && length + lengths.get(i) > most) {
                buckets.add(new Bucket(first, i, length));
                first = i;
                length = 0;
            }
            length += lengths.get(i);
        }
        buckets.add(new Bucket(first, count(), length));
        return buckets;
    }
}
