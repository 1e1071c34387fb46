package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tools.oracle.Reduction;

/** Known faults of the loaded NCCL. The reason is the same on all ranks, so that all omit the case. */
final class KnownFaults {
    private static final Version ANY_SIZE = new Version(2, 28, 7);
    private static final Version ANY_PLACE = new Version(2, 30, 3);
    private static final Version NO_AVERAGE = new Version(2, 30, 3);
    /** From this release on, highlevel excludes the kernels. */
    private static final Version EXCLUDED = new Version(2, 31, 2);

    private final NcclLibrary library = NcclLibrary.get();
    private final int size;
    private final boolean inWindows;

    KnownFaults(int size, boolean inWindows) {
        this.size = size;
        this.inWindows = inWindows;
    }

    /** The reason why a case can't be right, or null. */
    String of(Case c) {
        if (library.engine() == Engine.HOST) {
            return null;
        }
        if (size == 1) {
            return isScaled(c) && isFloat8(c.type())
                    ? "NCCL scales no float8 with a single rank (ncclInvalidArgument)"
                    : null;
        }
        return inWindows ? inWindow(c) : null;
    }

    private static boolean isScaled(Case c) {
        return c.operator() != null
                && (c.operator() == Operator.AVG || c.operator().reduction == Reduction.PRE_MUL_SUM);
    }

    private static boolean isFloat8(ElementType<?> type) {
        return type == ElementType.FLOAT8E4M3 || type == ElementType.FLOAT8E5M2;
    }

    private boolean lacksKernel(Case c) {
        return c.operation() == Operation.ALL_REDUCE
                && c.operator() == Operator.AVG
                && c.type().isFloat()
                && c.type() != ElementType.FLOAT64
                && library.version().isAtLeast(NO_AVERAGE)
                && !library.version().isAtLeast(EXCLUDED);
    }

    private String inWindow(Case c) {
        if (lacksKernel(c)) {
            return "from NCCL " + NO_AVERAGE + " to before " + EXCLUDED
                    + " no kernel for symmetric windows all-reduces averages of small floats";
        }
        boolean scatters = c.operation() == Operation.REDUCE_SCATTER;
        boolean gathers = c.operation() == Operation.ALL_GATHER;
        if (!scatters && !gathers && c.operation() != Operation.ALL_REDUCE) {
            return null;
        }
        int element = c.type().sizeInBytes();
        int block = c.count() * element;
        if ((scatters || gathers) && block % 8 != 0 && !library.version().isAtLeast(ANY_SIZE)) {
            return "before NCCL " + ANY_SIZE + " blocks must have a multiple of 8 bytes in symmetric windows";
        }
        boolean readsBlocks = scatters || gathers && c.form().inPlace;
        boolean oddBlocks = readsBlocks && block % 4 != 0;
        if (element < 4 && (c.isOdd() || oddBlocks) && !library.version().isAtLeast(ANY_PLACE)) {
            return "before NCCL " + ANY_PLACE + " elements are read at multiples of 4 bytes only in symmetric windows";
        }
        return null;
    }

    /** The reason why several cases can't be right in one group, or null. */
    String ofGroups() {
        return inWindows
                        && size > 1
                        && library.engine() != Engine.HOST
                        && !library.version().isAtLeast(ANY_SIZE)
                ? "before NCCL " + ANY_SIZE + " a group has one operation on symmetric windows"
                : null;
    }
}
