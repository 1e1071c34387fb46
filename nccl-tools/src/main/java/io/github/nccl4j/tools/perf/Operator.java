package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.ReduceOp;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The reduction operators, named as in nccl-tests. */
enum Operator {
    SUM(ReduceOp.SUM),
    PROD(ReduceOp.PROD),
    MAX(ReduceOp.MAX),
    MIN(ReduceOp.MIN),
    AVG(ReduceOp.AVG),
    /** A sum in which each rank's elements are first multiplied by a scalar of the rank. */
    MULSUM(null);

    /** NCCL's operator; null for MULSUM, for which each communicator creates an operator. */
    final ReduceOp builtIn;

    Operator(ReduceOp builtIn) {
        this.builtIn = builtIn;
    }

    String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The operator with a name, or all for "all". */
    static List<Operator> named(String name) {
        if (name.equalsIgnoreCase("all")) {
            return List.of(values());
        }
        for (Operator operator : values()) {
            if (operator.label().equalsIgnoreCase(name)) {
                return List.of(operator);
            }
        }
        throw new IllegalArgumentException("no such reduction: '" + name + "'; there are "
                + Arrays.stream(values()).map(Operator::label).toList() + " and all");
    }

    /** The scalar of a rank for MULSUM. */
    static int scalar(int rank) {
        return 1 + rank % 2;
    }

    /**
     * An element before the reduction: a small number, so that every partial result is exact in every type, including 8-bit
     * floats. In sums and products only two ranks have a non-neutral element; the ranks vary with the index.
     */
    int value(int rank, int ranks, int index, boolean signed) {
        int first = index % ranks;
        int second = (index * 7 + 3) % ranks;
        int ones = (rank == first ? 1 : 0) + (rank == second ? 1 : 0);
        return switch (this) {
            case SUM, MULSUM -> rank == first ? 1 + index % 2 + (ones - 1) : rank == second ? 1 + index / 2 % 2 : 0;
            case PROD -> ones == 0 ? 1 : rank == first ? 2 : 1 + index % 2;
            case MAX, MIN -> (index * 5 + rank * 3) % 7 + (signed ? -3 : 1);
            // The sum is a multiple of the number of ranks, so that averages of integers are exact.
            case AVG -> 1 + index % 3 + (rank == ranks - 1 && ranks % 2 == 1 ? 0 : rank % 2 == 0 ? 1 : -1);
        };
    }

    /** The result of an element, in exact arithmetic. */
    int reduced(int ranks, int index, boolean signed) {
        int result = this == AVG ? 0 : value(0, ranks, index, signed) * (this == MULSUM ? scalar(0) : 1);
        if (this == AVG) {
            for (int rank = 0; rank < ranks; rank++) {
                result += value(rank, ranks, index, signed);
            }
            return result / ranks;
        }
        for (int rank = 1; rank < ranks; rank++) {
            int value = value(rank, ranks, index, signed);
            result = switch (this) {
                case SUM -> result + value;
                case MULSUM -> result + value * scalar(rank);
                case PROD -> result * value;
                case MAX -> Math.max(result, value);
                case MIN -> Math.min(result, value);
                case AVG -> throw new AssertionError("above");
            };
        }
        return result;
    }
}
