package io.github.nccl4j.internal.binding;

import io.github.nccl4j.library.NativeLibrary;
import org.bytedeco.javacpp.annotation.Name;
import org.bytedeco.javacpp.annotation.Namespace;
import org.bytedeco.javacpp.annotation.Properties;

/** A group of calls that costs one transition from Java to native code. Not for programs. */
@Properties(inherit = io.github.nccl4j.presets.nccl.class)
public final class GroupedCalls {
    /** Numbers of the calls, for {@link #failedCall}. */
    public static final int START = 0;

    public static final int SEND = 1;
    public static final int RECV = 2;

    static {
        NativeLibrary.initialize();
    }

    private GroupedCalls() {}

    /**
     * Calls {@code ncclGroupStart}, {@code ncclSend}, {@code ncclRecv} and {@code ncclGroupEnd}. After a call that failed, only
     * the last one is made.
     *
     * @return the result in the lower half, and in the upper half the number of the call that returned it
     */
    @Namespace("nccl4j")
    @Name("sendAndReceive")
    public static native long sendAndReceive(
            long send,
            long sendCount,
            int sendType,
            int to,
            long recv,
            long recvCount,
            int recvType,
            int from,
            long communicator,
            long stream);

    /** Returns the result of {@link #sendAndReceive}. */
    public static int result(long outcome) {
        return (int) outcome;
    }

    /** Returns the call to which the result belongs: START, SEND, RECV, or a larger number for the end of the group. */
    public static int failedCall(long outcome) {
        return (int) (outcome >>> 32);
    }
}
