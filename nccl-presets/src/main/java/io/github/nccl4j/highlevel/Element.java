package io.github.nccl4j.highlevel;

/**
 * The type of the elements of a {@link DeviceBuffer}, for the compiler: a method with two buffers of one {@code T}
 * can't be called with a buffer of {@code Float32} and one of {@code Float16}. The types have no instances; the
 * constants of {@link ElementType} represent them at run time.
 *
 * <p>Without instances, the types need no thread rule.
 *
 * @since 0.1
 */
public sealed interface Element {
    /** Signed integers of 8 bits; {@code byte} in Java. */
    final class Int8 implements Element {
        private Int8() {}
    }

    /** Unsigned integers of 8 bits; {@code byte} in Java, with the same bits. */
    final class Uint8 implements Element {
        private Uint8() {}
    }

    /** Signed integers of 32 bits; {@code int} in Java. */
    final class Int32 implements Element {
        private Int32() {}
    }

    /** Unsigned integers of 32 bits; {@code int} in Java, with the same bits. */
    final class Uint32 implements Element {
        private Uint32() {}
    }

    /** Signed integers of 64 bits; {@code long} in Java. */
    final class Int64 implements Element {
        private Int64() {}
    }

    /** Unsigned integers of 64 bits; {@code long} in Java, with the same bits. */
    final class Uint64 implements Element {
        private Uint64() {}
    }

    /** IEEE 754 numbers of 16 bits; {@code short} in Java for the bits, {@code float} for the numbers. */
    final class Float16 implements Element {
        private Float16() {}
    }

    /** IEEE 754 numbers of 32 bits; {@code float} in Java. */
    final class Float32 implements Element {
        private Float32() {}
    }

    /** IEEE 754 numbers of 64 bits; {@code double} in Java. */
    final class Float64 implements Element {
        private Float64() {}
    }

    /** The upper 16 bits of a {@code float}; {@code short} in Java for the bits, {@code float} for the numbers. */
    final class Bfloat16 implements Element {
        private Bfloat16() {}
    }

    /**
     * Numbers of 8 bits, 4 of them exponent and 3 mantissa, without infinity; {@code byte} in Java for the bits,
     * {@code float} for the numbers.
     */
    final class Float8e4m3 implements Element {
        private Float8e4m3() {}
    }

    /**
     * Numbers of 8 bits, 5 of them exponent and 2 mantissa, with infinity; {@code byte} in Java for the bits,
     * {@code float} for the numbers.
     */
    final class Float8e5m2 implements Element {
        private Float8e5m2() {}
    }
}
