package io.github.nccl4j.internal.cuda;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.HostEngine;
import io.github.nccl4j.library.NativeLibrary;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.bytedeco.javacpp.Pointer;

/**
 * Checked calls for streams and events of host memory, which the host engine provides. With another library, or none,
 * streams of host memory are always empty, and handles are 0.
 */
public final class HostStreams {
    /** True once a stream was created, so that work may be pending. */
    private static volatile boolean used;
    /** True if the library is the host engine. */
    private static volatile boolean hostEngine;

    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());

    /** The number of {@link HostEngine#busyStreams}; set before {@link #used}. */
    private static ByteBuffer busyStreams;

    private HostStreams() {}

    /** Returns true if the library, which this loads, is the host engine. */
    private static boolean isAvailable() {
        try {
            hostEngine = NativeLibrary.engine() == Engine.HOST && NativeLibrary.provides("nccl4jHostStreamCreate");
        } catch (NcclLibraryException none) {
            hostEngine = false;
        }
        return hostEngine;
    }

    public static long createStream() {
        if (!isAvailable()) {
            return 0;
        }
        if (!used) {
            busyStreams = Address.buffer(HostEngine.busyStreams(), Integer.BYTES);
            used = true;
        }
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            Status.check(HostEngine.streamCreate(cell.address()), "nccl4jHostStreamCreate");
            return cell.buffer().getLong(0);
        }
    }

    public static boolean isStream(long handle) {
        return used && HostEngine.streamQuery(handle) != nccl.ncclInvalidArgument;
    }

    public static void destroyStream(long stream) {
        if (stream != 0) {
            Status.check(HostEngine.streamDestroy(stream), "nccl4jHostStreamDestroy");
        }
    }

    public static boolean streamIsDone(long stream) {
        return !used || isDone(HostEngine.streamQuery(stream), "nccl4jHostStreamQuery");
    }

    /** Returns true if a stream is idle. Makes no native call, which would take 10 to 20 ns; may return false always. */
    public static boolean isIdle(long stream) {
        return !used || stream != 0 && (int) INT.getAcquire(busyStreams, 0) == 0;
    }

    public static void synchronizeStream(long stream) {
        if (!isIdle(stream)) {
            Status.check(HostEngine.streamSynchronize(stream), "nccl4jHostStreamSynchronize");
        }
    }

    /** Waits for a stream, at most for about a time in nanoseconds. A query returns the result. */
    public static void synchronizeFor(long stream, long nanoseconds) {
        HostEngine.streamSynchronizeFor(stream, nanoseconds / 1e9);
    }

    /** Returns true if a stream is done without an error. */
    public static boolean streamIsDoneWithoutError(long stream) {
        return !used || HostEngine.streamQuery(stream) == nccl.ncclSuccess;
    }

    public static void waitForEvent(long stream, long event) {
        if (event != 0) {
            Status.check(HostEngine.streamWaitEvent(stream, event), "nccl4jHostStreamWaitEvent");
        }
    }

    public static boolean isCapturing(long stream) {
        int[] capturing = new int[1];
        if (used) {
            Status.check(HostEngine.streamIsCapturing(stream, capturing), "nccl4jHostStreamIsCapturing");
        }
        return capturing[0] != 0;
    }

    public static void beginCapture(long stream) {
        Status.check(HostEngine.streamBeginCapture(stream), "nccl4jHostStreamBeginCapture");
    }

    public static long endCapture(long stream) {
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            Status.check(HostEngine.streamEndCapture(stream, cell.address()), "nccl4jHostStreamEndCapture");
            return cell.buffer().getLong(0);
        }
    }

    /** Ends a capture after a failure. What it recorded may be of no use, which is not told again. */
    public static void discardCapture(long stream) {
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            if (HostEngine.streamEndCapture(stream, cell.address()) == nccl.ncclSuccess) {
                destroyGraph(cell.buffer().getLong(0));
            }
        }
    }

    /** Launches a graph and records an event behind it, unless the event is 0. */
    public static void launchGraph(long graph, long stream, long event) {
        Status.check(HostEngine.graphLaunch(graph, stream), "nccl4jHostGraphLaunch");
        recordEvent(event, stream);
    }

    public static void destroyGraph(long graph) {
        Status.check(HostEngine.graphDestroy(graph), "nccl4jHostGraphDestroy");
    }

    public static long createEvent() {
        if (!isAvailable()) {
            return 0;
        }
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            Status.check(HostEngine.eventCreate(cell.address()), "nccl4jHostEventCreate");
            return cell.buffer().getLong(0);
        }
    }

    public static void destroyEvent(long event) {
        if (event != 0) {
            Status.check(HostEngine.eventDestroy(event), "nccl4jHostEventDestroy");
        }
    }

    public static void recordEvent(long event, long stream) {
        if (event != 0) {
            Status.check(HostEngine.eventRecord(event, stream), "nccl4jHostEventRecord");
        }
    }

    public static boolean eventIsDone(long event) {
        return event == 0 || isDone(HostEngine.eventQuery(event), "nccl4jHostEventQuery");
    }

    /**
     * Returns true if the event is done without an error. As on a GPU, failed work is never done; callers check for
     * errors separately.
     */
    static boolean eventIsDoneWithoutError(long event) {
        return event == 0 || HostEngine.eventQuery(event) == nccl.ncclSuccess;
    }

    /** Returns true if nothing before the mark uses memory any more. */
    public static boolean eventHasEnded(long event) {
        return event == 0 || HostEngine.eventQuery(event) != nccl.ncclInProgress;
    }

    public static void synchronizeEvent(long event) {
        if (event != 0) {
            Status.check(HostEngine.eventSynchronize(event), "nccl4jHostEventSynchronize");
        }
    }

    public static double elapsedSeconds(long start, long end) {
        double[] seconds = new double[1];
        Status.check(HostEngine.eventElapsedTime(seconds, start, end), "nccl4jHostEventElapsedTime");
        return seconds[0];
    }

    public static void copyAsync(long target, long source, long bytes, long stream) {
        Status.check(HostEngine.memcpyAsync(target, source, bytes, stream), "nccl4jHostMemcpyAsync");
    }

    /** Frees memory now, or when the work that may use it is done. */
    public static void free(Pointer memory) {
        // Also needed without streams: a non-blocking communicator works in the background.
        if (hostEngine || NativeLibrary.isLoaded() && isAvailable()) {
            Status.check(HostEngine.free(memory.address()), "nccl4jHostFree");
        } else {
            Pointer.free(memory);
        }
    }

    private static boolean isDone(int result, String call) {
        if (result == nccl.ncclInProgress) {
            return false;
        }
        Status.check(result, call);
        return true;
    }
}
