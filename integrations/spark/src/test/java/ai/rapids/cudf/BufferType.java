package ai.rapids.cudf;

/** Stand-in for the enum of this name. */
public enum BufferType {
    VALIDITY,
    DATA
}
