package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.operation.Operator;
import java.util.List;

/**
 * A reduction operator, which combines the elements of the ranks.
 *
 * <p>This class is not an enum, because programs can create operators at run time, such as {@link PreMulSum}.
 * Programs cannot extend this class. The constants are immutable and may be used in any thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: types</a>
 * @since 0.1
 */
public class ReduceOp {
    /** The sum; integers wrap around. */
    public static final ReduceOp SUM = new ReduceOp(Operator.SUM);

    /** The product; integers wrap around. */
    public static final ReduceOp PROD = new ReduceOp(Operator.PROD);

    /** The largest. */
    public static final ReduceOp MAX = new ReduceOp(Operator.MAX);

    /** The smallest. */
    public static final ReduceOp MIN = new ReduceOp(Operator.MIN);

    /** The sum, divided by the number of ranks. */
    public static final ReduceOp AVG = new ReduceOp(Operator.AVG);

    private static final List<ReduceOp> BUILT_IN = List.of(SUM, PROD, MAX, MIN, AVG);

    final Operator operator;

    ReduceOp(Operator operator) {
        this.operator = operator;
    }

    /**
     * Returns NCCL's built-in operators.
     *
     * @return an immutable list, by code
     */
    public static List<ReduceOp> builtIn() {
        return BUILT_IN;
    }

    /**
     * Returns the value of {@code ncclRedOp_t}.
     *
     * @return the code
     */
    public final int code() {
        return operator.code;
    }

    /** Returns null for null: most operations have no operator. */
    static Operator operatorOf(ReduceOp op) {
        return op == null ? null : op.operator;
    }

    /** Returns the operator's name, such as "SUM". */
    @Override
    public String toString() {
        return operator.toString();
    }
}
