package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.tools.oracle.ElementFormat;
import io.github.nccl4j.tools.oracle.Reduction;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.SplittableRandom;

/**
 * The elements that ranks send. They follow from the case and the rank, so that each rank knows those of the others, and
 * are such that no engine's way to reduce leaves the range of a type that does not wrap around.
 */
final class Inputs {
    private Inputs() {}

    /** The elements that a rank sends. */
    static ByteBuffer of(Case one, int rank, int length) {
        ElementFormat format = ElementFormat.of(one.type().nativeCode());
        Reduction reduction = one.operator() == null ? null : one.operator().reduction;
        ByteBuffer elements = ByteBuffer.allocate(length * format.size).order(ByteOrder.nativeOrder());
        SplittableRandom random = new SplittableRandom(31 * one.seed() + rank);
        if (format.isInteger() && reduction != Reduction.AVG || reduction == null) {
            random.nextBytes(elements.array());
            return elements;
        }
        // Half of the cases of floats have one right answer, in any order.
        boolean coarse = one.seed() % 2 == 0;
        for (int i = 0; i < length; i++) {
            if (format.isInteger()) {
                format.putInteger(elements, i, BigInteger.valueOf(random.nextInt(16) - (format.isSigned() ? 8 : 0)));
            } else if (reduction == Reduction.PROD) {
                double power = random.nextInt(3) - 1;
                format.putNumber(elements, i, Math.pow(2, power) * (random.nextBoolean() ? 1 : -1));
            } else {
                format.putNumber(elements, i, coarse ? random.nextInt(3) - 1 : (random.nextInt(1025) - 512) / 64.0);
            }
        }
        return elements;
    }
}
