package io.github.nccl4j.samples.perf;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * The elements that ranks put in and must get, for one type and one reduction. They repeat with a period that is prime, so
 * that no length or offset of a test is a multiple of it; a repetition of a test begins at another place of the period.
 */
final class Elements {
    static final int PERIOD = 65_521;

    /** What a receive buffer is filled with, byte by byte. */
    static final int UNTOUCHED = 0x5a;

    private static final int RANK_SHIFT = 7919;
    private static final int REPETITION_SHIFT = 131;
    private static final int SMALLEST = -3;
    private static final int LARGEST = 16;

    private final ElementType<?> type;
    private final int size;
    private final int ranks;
    private final Operator operator;
    private final byte[][] codes = new byte[LARGEST - SMALLEST + 1][];
    private final Map<Integer, byte[]> made = new HashMap<>();

    /** The operator is null for collectives that only copy. */
    Elements(ElementType<?> type, Operator operator, int ranks) {
        this.type = type;
        this.operator = operator;
        this.ranks = ranks;
        size = type.sizeInBytes();
    }

    /** The period of a part's source, twice, so that each place of it is followed by a whole period. */
    byte[] period(Part part) {
        if (part.source() == Source.UNTOUCHED) {
            return made.computeIfAbsent(-2, key -> untouched());
        }
        int key = part.source() == Source.REDUCED ? -1 : operator == null ? 0 : part.rank();
        return made.computeIfAbsent(key, this::make);
    }

    /** Where in the period a part begins, in elements. */
    int phase(Part part, int repetition) {
        // Ranks whose elements are only copied share a period: what one sends begins elsewhere.
        long shift = operator == null && part.source() == Source.RANK ? (long) part.rank() * RANK_SHIFT : 0;
        return (int) ((part.index() + shift + (long) repetition * REPETITION_SHIFT) % PERIOD);
    }

    /** By how many units of the last place a result may differ: averages of floats are rounded at every rank. */
    int tolerance(Part part) {
        return part.source() == Source.REDUCED && operator == Operator.AVG && type.isFloat() ? ranks : 0;
    }

    private static byte[] doubled(byte[] period) {
        byte[] twice = new byte[2 * period.length];
        System.arraycopy(period, 0, twice, 0, period.length);
        System.arraycopy(period, 0, twice, period.length, period.length);
        return twice;
    }

    private byte[] untouched() {
        byte[] bytes = new byte[2 * PERIOD * size];
        Arrays.fill(bytes, (byte) UNTOUCHED);
        return bytes;
    }

    private byte[] make(int rank) {
        byte[] period = new byte[PERIOD * size];
        if (operator == null) {
            new SplittableRandom(PERIOD).nextBytes(period);
            return doubled(period);
        }
        boolean signed = Types.isSigned(type.dataType());
        for (int i = 0; i < PERIOD; i++) {
            int value = rank < 0 ? operator.reduced(ranks, i, signed) : operator.value(rank, ranks, i, signed);
            System.arraycopy(code(value), 0, period, i * size, size);
        }
        return doubled(period);
    }

    private byte[] code(int value) {
        if (codes[value - SMALLEST] == null) {
            codes[value - SMALLEST] = encode(type, value);
        }
        return codes[value - SMALLEST];
    }

    /** As the device has it. */
    static <T extends Element> byte[] encode(ElementType<T> type, int value) {
        try (DeviceBuffer<T> one = Device.host().allocate(type, 1)) {
            if (type.isFloat()) {
                one.fill((double) value);
            } else {
                one.fill((long) value);
            }
            ByteBuffer bytes = ByteBuffer.allocate(type.sizeInBytes()).order(ByteOrder.nativeOrder());
            one.copyTo(bytes);
            return bytes.array();
        }
    }
}
