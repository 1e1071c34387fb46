package io.github.nccl4j.internal.binding;

import io.github.nccl4j.library.NativeLibrary;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.annotation.Cast;
import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Properties;

/**
 * Native side of {@link io.github.nccl4j.highlevel.Profiler}: the queue into which NCCL's threads write. Not for programs. Any
 * thread may call it.
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class ProfilerQueue {
    /** The size of a record in bytes. */
    public static final int RECORD_SIZE = 120;

    static {
        NativeLibrary.initialize();
    }

    private ProfilerQueue() {}

    /** {@return the path of the library with the plugin, for NCCL_PROFILER_PLUGIN} */
    public static String pluginPath() {
        return Loader.load(NativeLibrary.class);
    }

    /**
     * Names the plugin to which this one passes all events.
     *
     * @param name a value of NCCL_PROFILER_PLUGIN
     */
    @Name("nccl4jProfilerChain")
    public static native void chain(@Cast("const char*") String name);

    /**
     * Starts or ends the recording of events, in all communicators that have the plugin. Loads no NCCL library.
     *
     * @param on true to record
     */
    @Name("nccl4jProfilerRecord")
    public static native void record(boolean on);

    /**
     * Sets how much shared memory NCCL needs to report kernels. Where less is free when a communicator is created, kernels are
     * not reported from then on.
     *
     * @param bytes the number of bytes at each rank of a communicator
     */
    @Name("nccl4jProfilerKernelMemory")
    public static native void kernelMemory(@Cast("unsigned long long") long bytes);

    /** {@return true if kernels are not reported because there was too little shared memory} */
    @Name("nccl4jProfilerWithoutKernels")
    @Cast("bool")
    public static native boolean withoutKernels();

    /**
     * Takes the oldest records.
     *
     * @param records the address of memory for the records
     * @param most the largest number of records
     * @return the number of records; -1 while another thread is inside this method
     */
    @Name("nccl4jProfilerDrain")
    public static native int drain(@Cast("void*") long records, int most);

    /** {@return the number of records that were dropped because the queue was full} */
    @Name("nccl4jProfilerDropped")
    @Cast("long long")
    public static native long dropped();
}
