package ai.rapids.cudf;

/** Stand-in for the class of this name, with the types that the tests use. */
public final class DType {
    public static final DType FLOAT32 = new DType(DTypeEnum.FLOAT32);
    public static final DType INT64 = new DType(DTypeEnum.INT64);

    private final DTypeEnum id;

    private DType(DTypeEnum id) {
        this.id = id;
    }

    /** Stand-in for the enum of this name. */
    public enum DTypeEnum {
        INT8,
        INT32,
        INT64,
        UINT8,
        UINT32,
        UINT64,
        FLOAT32,
        FLOAT64
    }

    public DTypeEnum getTypeId() {
        return id;
    }

    @Override
    public String toString() {
        return id.toString();
    }
}
