package io.github.nccl4j.spark;

import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.BufferType;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DType;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.ElementType;
import java.util.Map;

/**
 * A recipe: a column of cuDF as a buffer, without a copy. cuDF treats columns as immutable and shares them, so an operation in
 * place must have a column that nothing else uses, such as the result of {@code copyToColumnVector}.
 */
final class CudfColumns {
    private static final Map<ElementType<?>, DType.DTypeEnum> TYPES = Map.of(
            ElementType.INT8, DType.DTypeEnum.INT8,
            ElementType.UINT8, DType.DTypeEnum.UINT8,
            ElementType.INT32, DType.DTypeEnum.INT32,
            ElementType.UINT32, DType.DTypeEnum.UINT32,
            ElementType.INT64, DType.DTypeEnum.INT64,
            ElementType.UINT64, DType.DTypeEnum.UINT64,
            ElementType.FLOAT32, DType.DTypeEnum.FLOAT32,
            ElementType.FLOAT64, DType.DTypeEnum.FLOAT64);

    private CudfColumns() {}

    /**
     * Returns the rows of a column as a buffer, which is to be closed before the column.
     *
     * @param device the device on which cuDF has the column, usually that of the task's communicator
     * @throws IllegalArgumentException if the column has another type, a null, no rows, or less memory than its rows need
     */
    static <T extends Element> DeviceBuffer<T> buffer(ColumnVector column, ElementType<T> type, Device device) {
        DType.DTypeEnum found = column.getType().getTypeId();
        if (found != TYPES.get(type)) {
            throw new IllegalArgumentException("column must be of type " + type + ": " + found);
        }
        // The memory of a null row is arbitrary, and its bit in the mask is not communicated.
        if (column.getNullCount() != 0) {
            throw new IllegalArgumentException("column must not have nulls, which replaceNulls removes: "
                    + column.getNullCount() + " of " + column.getRowCount() + " rows");
        }
        BaseDeviceMemoryBuffer data = column.getDeviceBufferFor(BufferType.DATA);
        if (data == null) {
            throw new IllegalArgumentException("column must have rows: " + column.getRowCount());
        }
        long bytes = column.getRowCount() * type.sizeInBytes();
        if (data.getLength() < bytes) {
            throw new IllegalArgumentException(
                    "column must have " + bytes + " bytes for its rows: " + data.getLength());
        }
        return DeviceBuffer.wrap(device, type, data.getAddress(), column.getRowCount());
    }
}
