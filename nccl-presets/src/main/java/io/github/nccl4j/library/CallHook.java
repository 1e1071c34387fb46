package io.github.nccl4j.library;

import java.util.Objects;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.annotation.Raw;

/**
 * The native side of {@link io.github.nccl4j.highlevel.CallInterceptor}. Of no use to programs. Any thread may call it.
 */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class CallHook {
    private static volatile Listener listener;

    static {
        NativeLibrary.initialize();
    }

    private CallHook() {}

    /** Is told of every call. */
    @FunctionalInterface
    public interface Listener {

        /**
         * Before and after a call. What it throws is lost.
         *
         * @param slot which function
         * @param after whether the call has been made
         * @param arguments a word for each argument
         * @param kinds what it is, for each argument
         * @param result what the function returned
         */
        void call(int slot, boolean after, long[] arguments, byte[] kinds, long result);
    }

    /**
     * Has every call told from now on.
     *
     * @param told what is told, also of the ends of calls that are under way when this is called again
     */
    public static synchronized void start(Listener told) {
        listener = Objects.requireNonNull(told, "told");
        intercept(true);
    }

    /** Has no call told any more. */
    public static synchronized void stop() {
        intercept(false);
    }

    /** Called by native code, which can't treat an exception. */
    private static void tell(int slot, int after, long arguments, long kinds, int count, long result) {
        try {
            long[] words = new long[count];
            byte[] ofWords = new byte[count];
            if (count > 0) {
                new LongPointer(new At(arguments)).get(words);
                new BytePointer(new At(kinds)).get(ofWords);
            }
            listener.call(slot, after != 0, words, ofWords, result);
        } catch (RuntimeException | Error lost) {
            // The call must go on.
        }
    }

    /** Memory at an address. */
    private static final class At extends Pointer {
        At(long address) {
            super((Pointer) null);
            this.address = address;
        }
    }

    @Namespace("nccl4j")
    @Raw(withEnv = true)
    private static native void intercept(boolean on);

    /**
     * The function of a slot.
     *
     * @param slot the slot
     * @return its C name
     */
    @Namespace("nccl4j")
    public static native String functionName(int slot);
}
