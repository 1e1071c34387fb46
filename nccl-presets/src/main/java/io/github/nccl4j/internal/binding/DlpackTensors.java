package io.github.nccl4j.internal.binding;

import io.github.nccl4j.library.NativeLibrary;
import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/** Native side of {@link io.github.nccl4j.highlevel.Dlpack}. Not for programs. Any thread may call it. */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class DlpackTensors {
    static {
        NativeLibrary.initialize();
    }

    private DlpackTensors() {}

    /**
     * Creates a tensor of one dimension.
     *
     * @param data the address of its first element
     * @param length the number of its elements
     * @param deviceType DLPack's code of the kind of device
     * @param deviceId the number of the device
     * @param code DLPack's code of the kind of type
     * @param bits the size of an element
     * @param versioned true for {@code DLManagedTensorVersioned}, false for {@code DLManagedTensor}
     * @return the address of the struct
     */
    @Namespace("nccl4j")
    @Name("dlpackExport")
    public static native long export(
            long data, long length, int deviceType, int deviceId, int code, int bits, boolean versioned);

    /**
     * Returns true if the consumer of an exported tensor has released it. Must not be called again after it returned
     * true.
     *
     * @param address the address of the struct
     * @return true if its deleter was called
     */
    @Namespace("nccl4j")
    @Name("dlpackIsReleased")
    public static native boolean isReleased(long address);

    /**
     * Calls the deleter of any tensor.
     *
     * @param address the address of the struct
     * @param versioned true for {@code DLManagedTensorVersioned}, false for {@code DLManagedTensor}
     */
    @Namespace("nccl4j")
    @Name("dlpackDelete")
    public static native void delete(long address, boolean versioned);
}
