package io.github.nccl4j.internal.memory;

import io.github.nccl4j.highlevel.DataType;

/**
 * The elements of a type in memory.
 *
 * @param name the name of the type
 * @param type the type of NCCL
 * @param carrier the Java type of an element as a number
 * @param small the format of a float type of 8 or 16 bits, else null
 */
public record ElementFormat(String name, DataType type, Class<?> carrier, SmallFloatFormat small) {
    /** Returns the size of an element in bytes. */
    public int size() {
        return type.size();
    }

    public boolean isFloat() {
        return carrier == float.class || carrier == double.class;
    }

    /** Returns true if arrays and buffers of a Java type can hold elements of this type, as numbers or as bits. */
    public boolean accepts(Class<?> primitive) {
        return primitive == carrier
                || primitive == byte.class && size() == 1
                || primitive == short.class && size() == 2;
    }

    /** Returns the bits of an integer, after a range check, or rounded to a float type. */
    public long bitsOf(long value) {
        if (isFloat()) {
            // From 2^53 on, a double can't represent every long; the nearest double is rounded then.
            return carrier == float.class && small == null
                    ? Float.floatToRawIntBits((float) value)
                    : bitsOf((double) value);
        }
        if (size() < Long.BYTES) {
            boolean signed = name.startsWith("int");
            int bits = 8 * size();
            long min = signed ? -1L << (bits - 1) : 0;
            long max = (1L << (signed ? bits - 1 : bits)) - 1;
            if (value < min || value > max) {
                throw new IllegalArgumentException(
                        "value must be in the range of " + name + ", " + min + " to " + max + ": " + value);
            }
        }
        return value;
    }

    /** Returns the bits of a number, rounded to this type; throws if this is an integer type. */
    public long bitsOf(double value) {
        if (!isFloat()) {
            throw new IllegalArgumentException(name + " has integers only: " + value + "; pass an integer");
        }
        if (carrier == double.class) {
            return Double.doubleToRawLongBits(value);
        }
        return small == null ? Float.floatToRawIntBits((float) value) : small.encode(value);
    }

    @Override
    public String toString() {
        return name;
    }
}
