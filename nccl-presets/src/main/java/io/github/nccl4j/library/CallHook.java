package io.github.nccl4j.library;

import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FunctionPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.annotation.Cast;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/**
 * The native side of {@link io.github.nccl4j.highlevel.CallInterceptor}. Of no use to programs. Any thread may call it.
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class CallHook {
    static {
        NativeLibrary.initialize();
    }

    private CallHook() {}

    /** Is told of every call. An exception of it would end the call in the middle. */
    public static class Callback extends FunctionPointer {
        static {
            NativeLibrary.initialize();
        }

        /** Makes the native function that calls this object, which must be kept while it is used. */
        protected Callback() {
            allocate();
        }

        private native void allocate();

        /**
         * Before and after a call. To be overridden: JavaCPP wants it native, and has it call the native function.
         *
         * @param slot which function
         * @param after 0 before it, 1 after it
         * @param arguments a word for each argument
         * @param kinds what it is, for each argument
         * @param count how many arguments there are
         * @param result what the function returned
         */
        public native void call(
                int slot,
                int after,
                @Cast("const long long*") LongPointer arguments,
                @Cast("const signed char*") BytePointer kinds,
                int count,
                @Cast("long long") long result);
    }

    /**
     * Has every call told from now on, or none any more.
     *
     * @param callback what is told, or null
     */
    @Namespace("nccl4j")
    public static native void intercept(@Cast("nccl4j::InterceptCallback") Callback callback);

    /**
     * The function of a slot.
     *
     * @param slot the slot
     * @return its C name
     */
    @Namespace("nccl4j")
    public static native String functionName(int slot);
}
