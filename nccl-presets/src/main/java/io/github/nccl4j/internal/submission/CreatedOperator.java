package io.github.nccl4j.internal.submission;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.ScalarResidence;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.memory.ElementFormat;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.Operator;

/** An operator that multiplies before it adds, made for one communicator and one element type. */
public final class CreatedOperator extends Operator {
    private final CommunicatorCore core;
    private final DataType type;
    public final Resource resource;

    private CreatedOperator(int code, CommunicatorCore core, ElementFormat format, NativeBuffer factor) {
        super(code, "PreMulSum of " + format);
        this.core = core;
        type = format.type();
        resource = new Resource(
                core,
                this,
                () -> core.calls().callAlone("ncclRedOpDestroy", handle -> nccl.ncclRedOpDestroy(code, handle)),
                factor == null ? () -> {} : factor::unpin);
    }

    /** Creates an operator for a type that the library supports. */
    public static CreatedOperator create(CommunicatorCore core, ElementFormat format, double scalar) {
        long bits;
        if (format.isFloat()) {
            bits = format.bitsOf(scalar);
        } else if (scalar == Math.rint(scalar) && scalar >= -0x1p63 && scalar < 0x1p63) {
            bits = format.bitsOf((long) scalar);
        } else {
            throw new IllegalArgumentException(
                    "scalar must be an integer from -2^63 to 2^63 - 1 for " + format + ": " + scalar);
        }
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            cell.buffer().putLong(0, bits);
            return create(core, format, cell.address(), ScalarResidence.HOST_IMMEDIATE, null);
        }
    }

    /** Creates an operator with a factor in the memory of the device. The buffer must have been checked. */
    public static CreatedOperator create(CommunicatorCore core, NativeBuffer factor) {
        factor.pin();
        boolean made = false;
        try {
            CreatedOperator operator = create(core, factor.format, factor.address, ScalarResidence.DEVICE, factor);
            made = true;
            return operator;
        } finally {
            if (!made) {
                factor.unpin();
            }
        }
    }

    private static CreatedOperator create(
            CommunicatorCore core, ElementFormat format, long scalar, ScalarResidence residence, NativeBuffer factor) {
        core.requireOpen();
        try (NativeMemory cell = new NativeMemory(Integer.BYTES)) {
            core.calls()
                    .callAlone(
                            "ncclRedOpCreatePreMulSum",
                            handle -> nccl.ncclRedOpCreatePreMulSum(
                                    cell.address(), scalar, format.type().code(), residence.code(), handle));
            return new CreatedOperator(cell.buffer().getInt(0), core, format, factor);
        }
    }

    void check(CommunicatorCore user, DataType elements) {
        resource.check();
        if (user != core) {
            throw new IllegalArgumentException("op belongs to " + core + ", not to " + user + ": " + this);
        }
        if (elements != type) {
            throw new IllegalArgumentException(
                    "op must be for the type of the elements: " + this + ", elements of " + elements);
        }
    }
}
