package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
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
    public static final ReduceOp SUM = new ReduceOp(nccl.ncclSum, "SUM");

    /** The product; integers wrap around. */
    public static final ReduceOp PROD = new ReduceOp(nccl.ncclProd, "PROD");

    /** The largest. */
    public static final ReduceOp MAX = new ReduceOp(nccl.ncclMax, "MAX");

    /** The smallest. */
    public static final ReduceOp MIN = new ReduceOp(nccl.ncclMin, "MIN");

    /** The sum, divided by the number of ranks. */
    public static final ReduceOp AVG = new ReduceOp(nccl.ncclAvg, "AVG");

    private static final List<ReduceOp> BUILT_IN = List.of(SUM, PROD, MAX, MIN, AVG);

    private final int code;
    private final String name;

    ReduceOp(int code, String name) {
        this.code = code;
        this.name = name;
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
        return code;
    }

    /** Returns true if the operator is built into NCCL; else it belongs to a communicator. */
    final boolean isBuiltIn() {
        return code < nccl.ncclNumOps;
    }

    /** Returns true if the operator multiplies or divides: averages and created operators. */
    final boolean isScaled() {
        return code >= nccl.ncclAvg;
    }

    /** Returns the operator's name, such as "SUM". */
    @Override
    public String toString() {
        return name;
    }
}
