package io.github.nccl4j.tools.conformance;

import io.github.nccl4j.tools.oracle.ElementFormat;
import io.github.nccl4j.tools.oracle.Reduction;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.function.BiPredicate;

/** The expected contents of a receive buffer: its earlier contents, overwritten by the results of an operation. */
final class Expectation {
    /** In place of the last rank of a reduction: each element may have another one. */
    static final int ANY = -1;

    private final ElementFormat format;
    private final List<ByteBuffer> inputs;
    private final ByteBuffer elements;
    /** The tolerance of each element; null if results must be exact. */
    private final double[] tolerances;
    /** True for an element that is the result of ranks in another order. */
    private BiPredicate<ByteBuffer, Integer> isOther = (received, at) -> false;

    /**
     * An expectation.
     *
     * @param inputs the send buffers of all ranks; elements repeat after {@link Inputs#PERIOD}
     * @param before the earlier contents of the receive buffer
     * @param exact true if the engine reduces as {@link Reduction} does
     */
    Expectation(ElementFormat format, List<ByteBuffer> inputs, ByteBuffer before, boolean exact) {
        this.format = format;
        this.inputs = inputs;
        elements = ByteBuffer.allocate(before.capacity()).order(ByteOrder.nativeOrder());
        elements.put(0, before, 0, before.capacity());
        tolerances = exact || format.isInteger() ? null : new double[before.capacity() / format.size];
    }

    /**
     * The elements of all ranks from one on, reduced, are received from another on.
     *
     * @param last the rank whose elements are reduced last, or {@link #ANY}
     */
    void reduced(Reduction reduction, int from, int count, int to, int last) {
        int distinct = Math.min(count, Inputs.PERIOD);
        for (int i = 0; i < distinct; i++) {
            reduction.put(format, inputs, from + i, Math.max(0, last), elements, to + i);
            if (tolerances != null) {
                tolerances[to + i] = reduction.tolerance(format, inputs, from + i);
            }
        }
        Inputs.repeat(elements.slice(to * format.size, count * format.size), distinct * format.size);
        for (int i = distinct; tolerances != null && i < count; i++) {
            tolerances[to + i] = tolerances[to + i - distinct];
        }
        if (tolerances == null && last == ANY) {
            isOther = (received, at) -> at >= to
                    && at < to + count
                    && reduction.isResult(format, inputs, from + (at - to) % distinct, received, at);
        }
    }

    /** The elements of one rank from one on are received from another on. */
    void copied(int rank, int from, int count, int to) {
        elements.put(to * format.size, inputs.get(rank), from * format.size, count * format.size);
    }

    void compare(ByteBuffer received) {
        if (received.mismatch(elements) < 0) {
            return;
        }
        for (int i = 0; i < elements.capacity() / format.size; i++) {
            if (format.bits(elements, i) != format.bits(received, i)
                    && !isNear(i, received)
                    && !isOther.test(received, i)) {
                throw new AssertionError("element " + i + ": expected " + text(elements, i)
                        + (tolerances == null ? "" : " within " + tolerances[i]) + ", received " + text(received, i));
            }
        }
    }

    private boolean isNear(int index, ByteBuffer received) {
        return tolerances != null
                && Math.abs(format.number(elements, index) - format.number(received, index)) <= tolerances[index];
    }

    private String text(ByteBuffer buffer, int index) {
        Object value = format.isInteger() ? format.integer(buffer, index) : (Object) format.number(buffer, index);
        return value + " (bits " + Long.toHexString(format.bits(buffer, index)) + ")";
    }
}
