package ai.rapids.cudf;

import java.util.Arrays;

/**
 * Stand-in for the class of this name: the methods that {@code CudfColumns} calls, over host memory. The jar of cuDF has its
 * native libraries for GPUs, and more than 200 MB.
 */
public final class ColumnVector implements AutoCloseable {
    private final DType type;
    private final long rows;
    private final long nulls;
    private final BaseDeviceMemoryBuffer data;

    private ColumnVector(DType type, long rows, long nulls, BaseDeviceMemoryBuffer data) {
        this.type = type;
        this.rows = rows;
        this.nulls = nulls;
        this.data = data;
    }

    public static ColumnVector fromFloats(float... values) {
        return fromBoxedFloats(box(values));
    }

    private static Float[] box(float... values) {
        Float[] boxed = new Float[values.length];
        Arrays.setAll(boxed, i -> values[i]);
        return boxed;
    }

    /** A null has no value. An empty column has no memory. */
    public static ColumnVector fromBoxedFloats(Float... values) {
        if (values.length == 0) {
            return new ColumnVector(DType.FLOAT32, 0, 0, null);
        }
        BaseDeviceMemoryBuffer data = new BaseDeviceMemoryBuffer(values.length * Float.BYTES);
        int nulls = 0;
        for (int i = 0; i < values.length; i++) {
            if (values[i] == null) {
                nulls++;
            } else {
                data.memory.putFloat(i * Float.BYTES, values[i]);
            }
        }
        return new ColumnVector(DType.FLOAT32, values.length, nulls, data);
    }

    public DType getType() {
        return type;
    }

    public long getRowCount() {
        return rows;
    }

    public long getNullCount() {
        return nulls;
    }

    public BaseDeviceMemoryBuffer getDeviceBufferFor(BufferType wanted) {
        return wanted == BufferType.DATA ? data : null;
    }

    /** Not one of cuDF's: what a copy to the host would give. */
    public float[] floats() {
        float[] values = new float[(int) rows];
        data.memory.asFloatBuffer().get(values);
        return values;
    }

    @Override
    public void close() {}
}
