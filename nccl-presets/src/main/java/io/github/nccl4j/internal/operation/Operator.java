package io.github.nccl4j.internal.operation;

import io.github.nccl4j.global.nccl;
import java.util.List;

/** The operator of a reduction. Immutable. */
public class Operator {
    public static final Operator SUM = new Operator(nccl.ncclSum, "SUM");
    public static final Operator PROD = new Operator(nccl.ncclProd, "PROD");
    public static final Operator MAX = new Operator(nccl.ncclMax, "MAX");
    public static final Operator MIN = new Operator(nccl.ncclMin, "MIN");
    public static final Operator AVG = new Operator(nccl.ncclAvg, "AVG");

    private static final List<Operator> BUILT_IN = List.of(SUM, PROD, MAX, MIN, AVG);

    public final int code;
    private final String name;

    protected Operator(int code, String name) {
        this.code = code;
        this.name = name;
    }

    /** Returns true if the operator is built into NCCL; else it belongs to a communicator. */
    public final boolean isBuiltIn() {
        return code < nccl.ncclNumOps;
    }

    /** Returns true if the operator multiplies or divides: averages and created operators. */
    public final boolean isScaled() {
        return code >= nccl.ncclAvg;
    }

    /** Returns the name of the operator with a code. */
    public static String nameOf(int code) {
        return code >= 0 && code < BUILT_IN.size() ? BUILT_IN.get(code).name : "PreMulSum";
    }

    @Override
    public String toString() {
        return name;
    }
}
