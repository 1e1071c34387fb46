package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.memory.SmallFloatFormat;
import io.github.nccl4j.tools.oracle.SmallFloat;
import io.github.nccl4j.tools.oracle.SmallFloat.Top;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The bits of elements: every code of the small floats, and each limit of the integers. */
class ElementTypeTest {
    private static SmallFloat oracle(SmallFloatFormat format) {
        return switch (format) {
            case FLOAT16 -> new SmallFloat(5, 10, Top.INFINITY);
            case BFLOAT16 -> new SmallFloat(8, 7, Top.INFINITY);
            case FLOAT8E4M3 -> new SmallFloat(4, 3, Top.SATURATING);
            case FLOAT8E5M2 -> new SmallFloat(5, 2, Top.INFINITY);
        };
    }

    private static int codes(SmallFloatFormat format) {
        return format == SmallFloatFormat.FLOAT16 || format == SmallFloatFormat.BFLOAT16 ? 1 << 16 : 1 << 8;
    }

    @ParameterizedTest
    @EnumSource
    void everyCodeIsTheNumberOfTheOracle(SmallFloatFormat format) {
        SmallFloat oracle = oracle(format);
        for (int code = 0; code < codes(format); code++) {
            float expected = oracle.decode(code);
            float value = format.decode(code);
            assertEquals(expected, value, 0, "code " + code);
            assertEquals(1 / expected, 1 / value, 0, "the sign of code " + code);
            if (expected == expected) {
                assertEquals(code, format.encode(value), "code " + code);
            }
        }
    }

    /** Between two neighbours: half way to the even one, and a hair from there to the nearer. */
    @ParameterizedTest
    @EnumSource
    void roundsNumbersBetweenCodes(SmallFloatFormat format) {
        int finite = 0;
        while (Float.isFinite(format.decode(finite + 1))) {
            finite++;
        }
        for (int code = 0; code < finite; code++) {
            double middle = ((double) format.decode(code) + format.decode(code + 1)) / 2;
            int even = code % 2 == 0 ? code : code + 1;
            assertEquals(even, format.encode(middle), "" + middle);
            assertEquals(code, format.encode(Math.nextDown(middle)), "below " + middle);
            assertEquals(code + 1, format.encode(Math.nextUp(middle)), "above " + middle);
            int sign = codes(format) / 2;
            assertEquals(sign | even, format.encode(-middle));
        }
    }

    @ParameterizedTest
    @CsvSource({"FLOAT16,7c00,7e00", "BFLOAT16,7f80,7fc0", "FLOAT8E4M3,7e,7f", "FLOAT8E5M2,7c,7e"})
    void roundsTooLargeNumbersToMaximum(SmallFloatFormat format, String top, String nan) {
        int sign = codes(format) / 2;
        int code = Integer.parseInt(top, 16);
        assertEquals(code, format.encode(Double.POSITIVE_INFINITY));
        assertEquals(code, format.encode(Double.MAX_VALUE));
        assertEquals(sign | code, format.encode(Double.NEGATIVE_INFINITY));
        int notANumber = Integer.parseInt(nan, 16);
        assertEquals(notANumber, format.encode(Double.NaN));
        assertEquals(sign | notANumber, format.encode(Double.longBitsToDouble(0xfff8000000000000L)));
        assertEquals(0, format.encode(Double.MIN_VALUE));
        assertEquals(sign, format.encode(-0.0));
    }

    private static ElementType<?> type(String name) {
        return ElementType.values().stream()
                .filter(type -> type.toString().equals(name))
                .findFirst()
                .orElseThrow();
    }

    @ParameterizedTest
    @CsvSource({
        "int8,-128,127",
        "uint8,0,255",
        "int32,-2147483648,2147483647",
        "uint32,0,4294967295",
        "int64,-9223372036854775808,9223372036854775807",
        "uint64,-9223372036854775808,9223372036854775807"
    })
    void integersHaveTheirRange(String name, long least, long most) {
        ElementType<?> type = type(name);
        assertEquals(least, type.format.bitsOf(least));
        assertEquals(most, type.format.bitsOf(most));
        if (type.sizeInBytes() < 8) {
            for (long wrong : new long[] {least - 1, most + 1}) {
                assertEquals(
                        "value must be in the range of " + name + ", " + least + " to " + most + ": " + wrong,
                        assertThrows(IllegalArgumentException.class, () -> type.format.bitsOf(wrong))
                                .getMessage());
            }
        }
        assertEquals(
                name + " has integers only: 1.5; pass an integer",
                assertThrows(IllegalArgumentException.class, () -> type.format.bitsOf(1.5))
                        .getMessage());
    }

    @Test
    void floatsHaveTheirBits() {
        assertEquals(0x3fc00000, ElementType.FLOAT32.format.bitsOf(1.5));
        assertEquals(0x3ff8000000000000L, ElementType.FLOAT64.format.bitsOf(1.5));
        assertEquals(0x3fc0, ElementType.BFLOAT16.format.bitsOf(1.5));
        assertEquals(0x40400000, ElementType.FLOAT32.format.bitsOf(3L));
        assertEquals(0x4008000000000000L, ElementType.FLOAT64.format.bitsOf(3L));
        assertEquals(0x4200, ElementType.FLOAT16.format.bitsOf(3L));
        // Rounded only once, without rounding to double first.
        assertEquals(
                Float.floatToRawIntBits((float) ((1L << 54) + (1L << 30) + 1)),
                ElementType.FLOAT32.format.bitsOf((1L << 54) + (1L << 30) + 1));
    }

    @Test
    void arraysFitByTheirKindOrTheirSize() {
        for (ElementType<?> type : ElementType.values()) {
            for (Class<?> array : new Class<?>[] {
                byte.class, short.class, int.class, long.class, float.class, double.class, char.class, boolean.class
            }) {
                boolean small = type.isFloat() && type.sizeInBytes() <= 2;
                boolean expected =
                        switch (type.sizeInBytes()) {
                            case 1 -> array == byte.class || small && array == float.class;
                            case 2 -> array == short.class || array == float.class;
                            case 4 -> array == (type.isFloat() ? float.class : int.class);
                            default -> array == (type.isFloat() ? double.class : long.class);
                        };
                assertEquals(expected, type.format.accepts(array), type + " from " + array);
            }
        }
        assertTrue(ElementType.FLOAT64.isFloat() && !ElementType.INT64.isFloat());
    }

    /** The number and the carrier of each type: the codes are those of NCCL's header. */
    @Test
    void typesHaveTheirCodesAndCarriers() {
        List<String> described = ElementType.values().stream()
                .map(type -> type.nativeCode() + " " + type + " " + type.format.carrier() + " " + type.format.small())
                .toList();
        assertEquals(
                List.of(
                        nccl.ncclInt8 + " int8 byte null",
                        nccl.ncclUint8 + " uint8 byte null",
                        nccl.ncclInt32 + " int32 int null",
                        nccl.ncclUint32 + " uint32 int null",
                        nccl.ncclInt64 + " int64 long null",
                        nccl.ncclUint64 + " uint64 long null",
                        nccl.ncclFloat16 + " float16 float FLOAT16",
                        nccl.ncclFloat32 + " float32 float null",
                        nccl.ncclFloat64 + " float64 double null",
                        nccl.ncclBfloat16 + " bfloat16 float BFLOAT16",
                        nccl.ncclFloat8e4m3 + " float8e4m3 float FLOAT8E4M3",
                        nccl.ncclFloat8e5m2 + " float8e5m2 float FLOAT8E5M2"),
                described);
        for (ElementType<?> type : ElementType.values()) {
            assertEquals(type.nativeCode(), type.dataType().code());
        }
    }
}
