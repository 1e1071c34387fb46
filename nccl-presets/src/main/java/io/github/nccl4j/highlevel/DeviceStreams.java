package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.cuda.Cuda;

/** Streams and events of a device: those of CUDA, or, of host memory, those of the host engine. The context of host memory is 0. */
final class DeviceStreams {
    private DeviceStreams() {}

    private static boolean isHost(long context) {
        return context == 0;
    }

    static long createStream(long context, boolean nonBlocking) {
        return isHost(context) ? HostStreams.createStream() : Cuda.createStream(context, nonBlocking);
    }

    static void destroyStream(long context, long stream) {
        if (isHost(context)) {
            HostStreams.destroyStream(stream);
        } else {
            Cuda.destroyStream(context, stream);
        }
    }

    static boolean streamIsDone(long context, long stream) {
        return isHost(context) ? HostStreams.streamIsDone(stream) : Cuda.streamIsDone(context, stream);
    }

    static void synchronizeStream(long context, long stream) {
        if (isHost(context)) {
            HostStreams.synchronizeStream(stream);
        } else {
            Cuda.synchronizeStream(context, stream);
        }
    }

    static void waitForEvent(long context, long stream, long event) {
        if (isHost(context)) {
            HostStreams.waitForEvent(stream, event);
        } else {
            Cuda.waitForEvent(context, stream, event);
        }
    }

    static long createEvent(long context, boolean timing) {
        return isHost(context) ? HostStreams.createEvent() : Cuda.createEvent(context, timing);
    }

    static void destroyEvent(long context, long event) {
        if (isHost(context)) {
            HostStreams.destroyEvent(event);
        } else {
            Cuda.destroyEvent(context, event);
        }
    }

    static void recordEvent(long context, long event, long stream) {
        if (isHost(context)) {
            HostStreams.recordEvent(event, stream);
        } else {
            Cuda.recordEvent(context, event, stream);
        }
    }

    static boolean eventIsDone(long context, long event) {
        return isHost(context) ? HostStreams.eventIsDone(event) : Cuda.eventIsDone(context, event);
    }

    /** As {@link #eventIsDone} without an effect on captures of other threads. Failed work is not done. */
    static boolean eventIsDoneWhileCapturing(long context, long event) {
        return isHost(context)
                ? HostStreams.eventIsDoneWithoutError(event)
                : Cuda.eventIsDoneWhileCapturing(context, event);
    }

    static void synchronizeEvent(long context, long event) {
        if (isHost(context)) {
            HostStreams.synchronizeEvent(event);
        } else {
            Cuda.synchronizeEvent(context, event);
        }
    }

    /** Returns a description: "CudaStream 0x7f12 on CUDA device 0". */
    static String describe(String kind, long handle, Object device) {
        return (handle == 0 ? kind : kind + " 0x" + Long.toHexString(handle)) + " on " + device;
    }
}
