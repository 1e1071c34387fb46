package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.tools.oracle.ElementFormat;
import io.github.nccl4j.tools.oracle.Reduction;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.SplittableRandom;

/**
 * The elements that ranks send. They follow from the case and the rank, so that each rank knows those of the others, and
 * are such that no engine's way to reduce leaves the range of a type that does not wrap around.
 */
final class Inputs {
    /**
     * Elements repeat after this number, which makes large inputs and their results cheap. A prime, so that a part of the size of
     * an engine's buffer or share differs from the parts beside it.
     */
    static final int PERIOD = 8191;

    private Inputs() {}

    /**
     * Repeats elements.
     *
     * @param elements the buffer
     * @param period the number of bytes at its start to repeat
     */
    static void repeat(ByteBuffer elements, int period) {
        for (int filled = period; filled < elements.capacity(); filled *= 2) {
            elements.put(filled, elements, 0, Math.min(filled, elements.capacity() - filled));
        }
    }

    /** The elements that a rank sends. */
    static ByteBuffer of(Case one, int rank, int length) {
        ElementFormat format = ElementFormat.of(one.type().nativeCode());
        Reduction reduction = one.operator() == null ? null : one.operator().reduction;
        ByteBuffer elements = ByteBuffer.allocate(length * format.size).order(ByteOrder.nativeOrder());
        SplittableRandom random = new SplittableRandom(31 * one.seed() + rank);
        int distinct = Math.min(length, PERIOD);
        fill(elements, distinct, one, format, reduction, random);
        repeat(elements, distinct * format.size);
        return elements;
    }

    private static void fill(
            ByteBuffer elements,
            int distinct,
            Case one,
            ElementFormat format,
            Reduction reduction,
            SplittableRandom random) {
        if (format.isInteger() && reduction != Reduction.AVG || reduction == null) {
            // Not nextBytes, which is several times slower.
            for (int i = 0; i < distinct; i++) {
                format.putBits(elements, i, random.nextLong());
            }
            return;
        }
        // Half of the cases of floats have one right answer, in any order.
        boolean coarse = one.seed() % 2 == 0;
        for (int i = 0; i < distinct; i++) {
            if (format.isInteger()) {
                format.putBits(elements, i, random.nextInt(16) - (format.isSigned() ? 8 : 0));
            } else if (reduction == Reduction.PROD) {
                double power = random.nextInt(3) - 1;
                format.putNumber(elements, i, Math.pow(2, power) * (random.nextBoolean() ? 1 : -1));
            } else {
                format.putNumber(elements, i, coarse ? random.nextInt(3) - 1 : (random.nextInt(1025) - 512) / 64.0);
            }
        }
    }
}
