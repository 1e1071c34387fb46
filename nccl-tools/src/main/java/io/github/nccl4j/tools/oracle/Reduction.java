package io.github.nccl4j.tools.oracle;

import io.github.nccl4j.global.nccl;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * The results of a reduction, element by element, as in a ring of NCCL: from the rank after the last one to the last one, each step
 * rounded to the type. The average of floats is a sum of inputs that are multiplied by 1 / ranks, and that of integers wraps
 * around before the division.
 */
public enum Reduction {
    SUM(nccl.ncclSum),
    PROD(nccl.ncclProd),
    MAX(nccl.ncclMax),
    MIN(nccl.ncclMin),
    AVG(nccl.ncclAvg),
    /** A sum of inputs, each multiplied by a scalar of its rank first. */
    PRE_MUL_SUM(-1);

    /** The built-in operator; that of PRE_MUL_SUM is made for a communicator. */
    public final int code;

    Reduction(int code) {
        this.code = code;
    }

    /** The scalar of a rank, for PRE_MUL_SUM: a number that each type represents exactly. */
    public static int scalar(int rank) {
        return rank % 7 + 2;
    }

    /**
     * Puts the result for the element at {@code index} of all inputs into {@code result} at {@code at}.
     *
     * @param last the rank whose input is the last one
     */
    public void put(ElementFormat type, List<ByteBuffer> inputs, int index, int last, ByteBuffer result, int at) {
        if (type.isInteger()) {
            type.putBits(result, at, integers(type, inputs, index));
        } else {
            type.putNumber(result, at, floats(type, inputs, index, last));
        }
    }

    /** True if an element is the result for the element at {@code index} of all inputs, whichever rank is the last. */
    public boolean isResult(ElementFormat type, List<ByteBuffer> inputs, int index, ByteBuffer received, int at) {
        ByteBuffer result = ByteBuffer.allocate(type.size).order(received.order());
        for (int last = 0; last < inputs.size(); last++) {
            put(type, inputs, index, last, result, 0);
            if (type.bits(result, 0) == type.bits(received, at)) {
                return true;
            }
        }
        return false;
    }

    /**
     * The tolerance of results of floats, compared with {@link #put}: each rank's element may be rounded when it is
     * scaled and when it is added, in any order, in the type itself.
     */
    public double tolerance(ElementFormat type, List<ByteBuffer> inputs, int index) {
        if (this == MAX || this == MIN) {
            return 0;
        }
        double magnitude = this == PROD ? 1 : 0;
        for (int rank = 0; rank < inputs.size(); rank++) {
            double value = Math.abs(type.number(inputs.get(rank), index));
            magnitude = switch (this) {
                case PROD -> magnitude * value;
                case PRE_MUL_SUM -> magnitude + value * scalar(rank);
                default -> magnitude + value;
            };
        }
        double roundings = inputs.size() + 1;
        return roundings * (magnitude * type.epsilon() / (this == AVG ? inputs.size() : 1) + type.smallest());
    }

    /** The result of integers, whose bits above those of the type have no meaning: arithmetic of 64 bits wraps around as theirs. */
    private long integers(ElementFormat type, List<ByteBuffer> inputs, int index) {
        long result = 0;
        for (int rank = 0; rank < inputs.size(); rank++) {
            long value = type.extended(type.bits(inputs.get(rank), index));
            if (this == PRE_MUL_SUM) {
                value *= scalar(rank);
            }
            if (rank == 0) {
                result = value;
                continue;
            }
            result = switch (this) {
                case SUM, AVG, PRE_MUL_SUM -> result + value;
                case PROD -> result * value;
                case MAX -> type.compare(result, value) < 0 ? value : result;
                case MIN -> type.compare(result, value) < 0 ? result : value;
            };
        }
        if (this != AVG) {
            return result;
        }
        long sum = type.extended(result);
        return type.isSigned() ? sum / inputs.size() : Long.divideUnsigned(sum, inputs.size());
    }

    private double floats(ElementFormat type, List<ByteBuffer> inputs, int index, int last) {
        int ranks = inputs.size();
        double result = 0;
        for (int i = 1; i <= ranks; i++) {
            int rank = (last + i) % ranks;
            double value = type.number(inputs.get(rank), index);
            double scalar = this == AVG ? type.rounded(1.0 / ranks) : scalar(rank);
            boolean multiplies = this == AVG || this == PRE_MUL_SUM;
            if (i == 1) {
                result = multiplies ? type.rounded(value * scalar) : value;
                continue;
            }
            result = switch (this) {
                case SUM -> type.rounded(result + value);
                case PROD -> type.rounded(result * value);
                case MAX -> Math.max(result, value);
                case MIN -> Math.min(result, value);
                case AVG, PRE_MUL_SUM -> type.multiplyAdd(value, scalar, result);
            };
        }
        return result;
    }
}
