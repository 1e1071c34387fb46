package io.github.nccl4j.internal.binding;

import io.github.nccl4j.library.NativeLibrary;
import java.util.Objects;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.annotation.Raw;

/** Native side of {@link io.github.nccl4j.highlevel.CallInterceptor}. Not for programs. Any thread may call it. */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class CallHook {
    private static volatile Listener listener;

    static {
        NativeLibrary.initialize();
    }

    private CallHook() {}

    /** Listener for every call. */
    @FunctionalInterface
    public interface Listener {

        /**
         * Called before and after a call. Exceptions are dropped.
         *
         * @param slot the slot of the function
         * @param after true after the call, false before it
         * @param arguments a word for each argument
         * @param kinds the kind of each argument
         * @param result the result of the function
         */
        void call(int slot, boolean after, long[] arguments, byte[] kinds, long result);
    }

    /**
     * Sets the listener for all calls from now on.
     *
     * @param newListener the listener; also gets the ends of calls in progress if it replaces another one
     */
    public static synchronized void start(Listener newListener) {
        listener = Objects.requireNonNull(newListener, "newListener");
        intercept(true);
    }

    /** Removes the listener. */
    public static synchronized void stop() {
        intercept(false);
    }

    /** Called by native code, which can't handle exceptions. */
    private static void notifyListener(int slot, int after, long arguments, long kinds, int count, long result) {
        try {
            long[] words = new long[count];
            byte[] ofWords = new byte[count];
            if (count > 0) {
                new LongPointer(new At(arguments)).get(words);
                new BytePointer(new At(kinds)).get(ofWords);
            }
            listener.call(slot, after != 0, words, ofWords, result);
        } catch (RuntimeException | Error lost) {
            // The call must continue.
        }
    }

    /** Returns memory at an address. */
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
     * Returns the function of a slot.
     *
     * @param slot the slot
     * @return its C name
     */
    @Namespace("nccl4j")
    public static native String functionName(int slot);
}
