package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.ElementType;

/**
 * One operation with all its arguments.
 *
 * @param operator null if the operation only copies
 * @param seed the seed of the inputs
 * @param tuning null for a call without a configuration
 */
record Case(
        Operation operation,
        ElementType<?> type,
        Operator operator,
        int count,
        Form form,
        int root,
        long seed,
        Tuning tuning) {
    /** True if its buffers are aligned to the size of an element only. */
    boolean isOdd() {
        return seed % 3 == 0;
    }

    @Override
    public String toString() {
        return operation + " of " + count + " " + type + (operator == null ? "" : " " + operator) + " " + form
                + " root " + root + (tuning == null ? "" : " as configured: " + tuning);
    }
}
