package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.HostEngine;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.NcclLibraryException;
import org.bytedeco.javacpp.Pointer;

/**
 * Streams and events of host memory, checked. They are the host engine's; with any other library, or none, nothing can be in
 * a stream of host memory, and handles are 0.
 */
final class HostStreams {
    /** Some stream was created, so that work may be pending somewhere. */
    private static volatile boolean used;
    /** The library is the host engine. */
    private static volatile boolean there;

    private HostStreams() {}

    /** Loads the library. */
    private static boolean areThere() {
        try {
            there = NativeLibrary.engine() == Engine.HOST && NativeLibrary.provides("nccl4jHostStreamCreate");
        } catch (NcclLibraryException none) {
            there = false;
        }
        return there;
    }

    static long createStream() {
        if (!areThere()) {
            return 0;
        }
        used = true;
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            Status.check(HostEngine.streamCreate(cell.address()), "nccl4jHostStreamCreate");
            return cell.buffer().getLong(0);
        }
    }

    static boolean isStream(long handle) {
        return used && HostEngine.streamQuery(handle) != nccl.ncclInvalidArgument;
    }

    static void destroyStream(long stream) {
        if (stream != 0) {
            Status.check(HostEngine.streamDestroy(stream), "nccl4jHostStreamDestroy");
        }
    }

    static boolean streamIsDone(long stream) {
        return !used || isDone(HostEngine.streamQuery(stream), "nccl4jHostStreamQuery");
    }

    static void synchronizeStream(long stream) {
        if (used) {
            Status.check(HostEngine.streamSynchronize(stream), "nccl4jHostStreamSynchronize");
        }
    }

    /** Copies see what the thread's default stream waits for. */
    static void synchronizeDefault() {
        synchronizeStream(0);
    }

    static void streamWaits(long stream, long event) {
        if (event != 0) {
            Status.check(HostEngine.streamWaitEvent(stream, event), "nccl4jHostStreamWaitEvent");
        }
    }

    static long createEvent() {
        if (!areThere()) {
            return 0;
        }
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            Status.check(HostEngine.eventCreate(cell.address()), "nccl4jHostEventCreate");
            return cell.buffer().getLong(0);
        }
    }

    static void destroyEvent(long event) {
        if (event != 0) {
            Status.check(HostEngine.eventDestroy(event), "nccl4jHostEventDestroy");
        }
    }

    static void recordEvent(long event, long stream) {
        if (event != 0) {
            Status.check(HostEngine.eventRecord(event, stream), "nccl4jHostEventRecord");
        }
    }

    static boolean eventIsDone(long event) {
        return event == 0 || isDone(HostEngine.eventQuery(event), "nccl4jHostEventQuery");
    }

    /** As on a GPU, where work that has failed never ends by itself; who asks this asks for errors, too. */
    static boolean eventIsDoneWell(long event) {
        return event == 0 || HostEngine.eventQuery(event) == nccl.ncclSuccess;
    }

    /** Returns true if nothing before the mark uses memory any more. */
    static boolean eventHasEnded(long event) {
        return event == 0 || HostEngine.eventQuery(event) != nccl.ncclInProgress;
    }

    static void synchronizeEvent(long event) {
        if (event != 0) {
            Status.check(HostEngine.eventSynchronize(event), "nccl4jHostEventSynchronize");
        }
    }

    static double elapsedSeconds(long start, long end) {
        double[] seconds = new double[1];
        Status.check(HostEngine.eventElapsedTime(seconds, start, end), "nccl4jHostEventElapsedTime");
        return seconds[0];
    }

    static void copyAsync(long target, long source, long bytes, long stream) {
        Status.check(HostEngine.memcpyAsync(target, source, bytes, stream), "nccl4jHostMemcpyAsync");
    }

    /** Frees memory now, or when the work that may use it is done. */
    static void free(Pointer memory) {
        // Also without streams: a communicator that does not block works in the background.
        if (there || NativeLibrary.isLoaded() && areThere()) {
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
