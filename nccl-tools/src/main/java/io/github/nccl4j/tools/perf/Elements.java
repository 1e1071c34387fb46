package io.github.nccl4j.tools.perf;

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
 * The elements that ranks send and must receive, for one type and one reduction. Not thread-safe.
 *
 * <p>The elements repeat with a prime period, of which no length or offset of a test is a multiple. Repetitions of a test begin
 * at different positions of the period.
 */
final class Elements {
    static final int PERIOD = 65_521;

    /** The byte with which receive buffers are filled. */
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
    private final Map<Integer, byte[]> periods = new HashMap<>();

    /** The operator is null for collectives without a reduction. */
    Elements(ElementType<?> type, Operator operator, int ranks) {
        this.type = type;
        this.operator = operator;
        this.ranks = ranks;
        size = type.sizeInBytes();
    }

    /** The period of a part's source, repeated once, so that a whole period follows each position in the first. */
    byte[] period(Part part) {
        if (part.source() == Source.UNTOUCHED) {
            return periods.computeIfAbsent(-2, key -> untouched());
        }
        int key = part.source() == Source.REDUCED ? -1 : operator == null ? 0 : part.rank();
        return periods.computeIfAbsent(key, this::make);
    }

    /** The position in the period where a part begins, in elements. */
    int phase(Part part, int repetition) {
        // Without a reduction all ranks share a period, and begin at different positions.
        long shift = operator == null && part.source() == Source.RANK ? (long) part.rank() * RANK_SHIFT : 0;
        return (int) ((part.index() + shift + (long) repetition * REPETITION_SHIFT) % PERIOD);
    }

    /** The tolerance in units of the last place: averages of floats are rounded on every rank. */
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

    /** The bytes of a value in device memory. */
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
