package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.PreMulSum;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.oracle.Reduction;

/** The operators of highlevel, and their results. */
enum Operator {
    SUM(Reduction.SUM),
    PROD(Reduction.PROD),
    MAX(Reduction.MAX),
    MIN(Reduction.MIN),
    AVG(Reduction.AVG),
    PRE_MUL_SUM_OF_HOST_SCALAR(Reduction.PRE_MUL_SUM),
    PRE_MUL_SUM_OF_DEVICE_SCALAR(Reduction.PRE_MUL_SUM);

    final Reduction reduction;

    Operator(Reduction reduction) {
        this.reduction = reduction;
    }

    /** An operator of a communicator is closed after its last use. */
    <T extends Element> ReduceOp create(Member member, ElementType<T> type) {
        if (reduction != Reduction.PRE_MUL_SUM) {
            return ReduceOp.builtIn().get(reduction.code);
        }
        int scalar = Reduction.scalar(member.rank());
        if (this == PRE_MUL_SUM_OF_HOST_SCALAR) {
            return member.communicator.preMulSum(type, scalar);
        }
        DeviceBuffer<T> buffer = member.take(type, 1);
        buffer.fill((long) scalar);
        return member.communicator.preMulSum(buffer);
    }

    static void close(ReduceOp op) {
        if (op instanceof PreMulSum<?> operator) {
            operator.close();
        }
    }
}
