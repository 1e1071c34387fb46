package io.github.nccl4j.highlevel;

import io.github.nccl4j.highlevel.Element.Bfloat16;
import io.github.nccl4j.highlevel.Element.Float16;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Float64;
import io.github.nccl4j.highlevel.Element.Float8e4m3;
import io.github.nccl4j.highlevel.Element.Float8e5m2;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.Element.Int8;
import io.github.nccl4j.highlevel.Element.Uint32;
import io.github.nccl4j.highlevel.Element.Uint64;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.internal.memory.ElementFormat;
import io.github.nccl4j.internal.memory.SmallFloatFormat;
import java.util.List;

/**
 * An element type: one of NCCL's twelve data types, with a Java type for type checks by the compiler.
 *
 * <pre>{@code
 * DeviceBuffer<Float32> gradients = device.allocate(ElementType.FLOAT32, 1024);
 * }</pre>
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @param <T> the corresponding type of {@link Element}
 * @since 0.1
 */
public final class ElementType<T extends Element> {
    /** {@code ncclInt8}; {@code byte} in Java. */
    public static final ElementType<Int8> INT8 = new ElementType<>("int8", DataType.INT8, byte.class);

    /** {@code ncclUint8}; {@code byte} in Java. */
    public static final ElementType<Uint8> UINT8 = new ElementType<>("uint8", DataType.UINT8, byte.class);

    /** {@code ncclInt32}; {@code int} in Java. */
    public static final ElementType<Int32> INT32 = new ElementType<>("int32", DataType.INT32, int.class);

    /** {@code ncclUint32}; {@code int} in Java. */
    public static final ElementType<Uint32> UINT32 = new ElementType<>("uint32", DataType.UINT32, int.class);

    /** {@code ncclInt64}; {@code long} in Java. */
    public static final ElementType<Int64> INT64 = new ElementType<>("int64", DataType.INT64, long.class);

    /** {@code ncclUint64}; {@code long} in Java. */
    public static final ElementType<Uint64> UINT64 = new ElementType<>("uint64", DataType.UINT64, long.class);

    /** {@code ncclFloat16}; {@code float} in Java, or {@code short} for the bits. */
    public static final ElementType<Float16> FLOAT16 =
            new ElementType<>("float16", DataType.FLOAT16, SmallFloatFormat.FLOAT16);

    /** {@code ncclFloat32}; {@code float} in Java. */
    public static final ElementType<Float32> FLOAT32 = new ElementType<>("float32", DataType.FLOAT32, float.class);

    /** {@code ncclFloat64}; {@code double} in Java. */
    public static final ElementType<Float64> FLOAT64 = new ElementType<>("float64", DataType.FLOAT64, double.class);

    /** {@code ncclBfloat16}; {@code float} in Java, or {@code short} for the bits. */
    public static final ElementType<Bfloat16> BFLOAT16 =
            new ElementType<>("bfloat16", DataType.BFLOAT16, SmallFloatFormat.BFLOAT16);

    /** {@code ncclFloat8e4m3}; {@code float} in Java, or {@code byte} for the bits. */
    public static final ElementType<Float8e4m3> FLOAT8E4M3 =
            new ElementType<>("float8e4m3", DataType.FLOAT8_E4M3, SmallFloatFormat.FLOAT8E4M3);

    /** {@code ncclFloat8e5m2}; {@code float} in Java, or {@code byte} for the bits. */
    public static final ElementType<Float8e5m2> FLOAT8E5M2 =
            new ElementType<>("float8e5m2", DataType.FLOAT8_E5M2, SmallFloatFormat.FLOAT8E5M2);

    private static final List<ElementType<?>> VALUES = List.of(
            INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT8E4M3, FLOAT8E5M2);

    final ElementFormat format;

    private ElementType(String name, DataType dataType, Class<?> carrier) {
        this(name, dataType, carrier, null);
    }

    private ElementType(String name, DataType dataType, SmallFloatFormat small) {
        this(name, dataType, float.class, small);
    }

    private ElementType(String name, DataType dataType, Class<?> carrier, SmallFloatFormat small) {
        format = new ElementFormat(name, dataType, carrier, small);
    }

    /** {@return all twelve types, in the order of NCCL's codes} */
    public static List<ElementType<?>> values() {
        return VALUES;
    }

    /** {@return the corresponding {@link DataType}, with the release that added it} */
    public DataType dataType() {
        return format.type();
    }

    /** {@return NCCL's code of the type, a {@code ncclDataType_t}} */
    public int nativeCode() {
        return format.type().code();
    }

    /** {@return the size of an element in bytes} */
    public int sizeInBytes() {
        return format.size();
    }

    /** {@return true if elements are floating-point numbers} */
    public boolean isFloat() {
        return format.isFloat();
    }

    /** {@return the name, such as "float32"} */
    @Override
    public String toString() {
        return format.name();
    }
}
