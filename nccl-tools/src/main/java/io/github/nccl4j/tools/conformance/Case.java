package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.highlevel.ElementType;

/**
 * One operation with all its arguments.
 *
 * @param seed the seed of the inputs
 * @param tuning null for a call without a configuration
 */
record Case(Operation operation, Elements elements, Form form, int root, long seed, Tuning tuning) {
    /**
     * The elements and their reduction.
     *
     * @param operator null if the operation only copies
     */
    record Elements(ElementType<?> type, Operator operator, int count) {}

    ElementType<?> type() {
        return elements.type;
    }

    Operator operator() {
        return elements.operator;
    }

    int count() {
        return elements.count;
    }

    /** True if its buffers are aligned to the size of an element only. */
    boolean isOdd() {
        return seed % 3 == 0;
    }

    @Override
    public String toString() {
        return operation + " of " + count() + " " + type() + (operator() == null ? "" : " " + operator()) + " " + form
                + " root " + root + (tuning == null ? "" : " as configured: " + tuning);
    }
}
