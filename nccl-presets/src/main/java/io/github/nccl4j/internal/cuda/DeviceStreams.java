package io.github.nccl4j.internal.cuda;

/** Streams and events of a device: those of CUDA, or, of host memory, those of the host engine. The context of host memory is 0. */
public final class DeviceStreams {
    private DeviceStreams() {}

    private static boolean isHost(long context) {
        return context == 0;
    }

    public static long createStream(long context, boolean nonBlocking) {
        return isHost(context) ? HostStreams.createStream() : Cuda.createStream(context, nonBlocking);
    }

    public static void destroyStream(long context, long stream) {
        if (isHost(context)) {
            HostStreams.destroyStream(stream);
        } else {
            Cuda.destroyStream(context, stream);
        }
    }

    public static boolean streamIsDone(long context, long stream) {
        return isHost(context) ? HostStreams.streamIsDone(stream) : Cuda.streamIsDone(context, stream);
    }

    public static void synchronizeStream(long context, long stream) {
        if (isHost(context)) {
            HostStreams.synchronizeStream(stream);
        } else {
            Cuda.synchronizeStream(context, stream);
        }
    }

    public static void waitForEvent(long context, long stream, long event) {
        if (isHost(context)) {
            HostStreams.waitForEvent(stream, event);
        } else {
            Cuda.waitForEvent(context, stream, event);
        }
    }

    public static boolean isCapturing(long context, long stream) {
        return isHost(context) ? HostStreams.isCapturing(stream) : Cuda.isCapturing(context, stream);
    }

    public static void beginCapture(long context, long stream) {
        if (isHost(context)) {
            HostStreams.beginCapture(stream);
        } else {
            Cuda.beginCapture(context, stream);
        }
    }

    /** Ends a capture after a failure and discards it; adds further errors to the failure. */
    public static void discardCapture(long context, long stream, Throwable failure) {
        if (isHost(context)) {
            HostStreams.discardCapture(stream);
        } else {
            Cuda.discardCapture(context, stream, failure);
        }
    }

    /** Ends a capture and creates an executable graph of it. */
    public static long endCapture(long context, long stream) {
        return isHost(context) ? HostStreams.endCapture(stream) : Cuda.endCapture(context, stream);
    }

    /** Launches a graph and records an event behind it, unless the event is 0. */
    public static void launchGraph(long context, long graph, long stream, long event) {
        if (isHost(context)) {
            HostStreams.launchGraph(graph, stream, event);
        } else {
            Cuda.launchGraph(context, graph, stream, event);
        }
    }

    public static void destroyGraph(long context, long graph) {
        if (isHost(context)) {
            HostStreams.destroyGraph(graph);
        } else {
            Cuda.destroyGraph(context, graph);
        }
    }

    public static long createEvent(long context, boolean timing) {
        return isHost(context) ? HostStreams.createEvent() : Cuda.createEvent(context, timing);
    }

    public static void destroyEvent(long context, long event) {
        if (isHost(context)) {
            HostStreams.destroyEvent(event);
        } else {
            Cuda.destroyEvent(context, event);
        }
    }

    public static void recordEvent(long context, long event, long stream) {
        if (isHost(context)) {
            HostStreams.recordEvent(event, stream);
        } else {
            Cuda.recordEvent(context, event, stream);
        }
    }

    public static boolean eventIsDone(long context, long event) {
        return isHost(context) ? HostStreams.eventIsDone(event) : Cuda.eventIsDone(context, event);
    }

    /** As {@link #eventIsDone} without an effect on captures of other threads. Failed work is not done. */
    public static boolean eventIsDoneWhileCapturing(long context, long event) {
        return isHost(context)
                ? HostStreams.eventIsDoneWithoutError(event)
                : Cuda.eventIsDoneWhileCapturing(context, event);
    }

    public static void synchronizeEvent(long context, long event) {
        if (isHost(context)) {
            HostStreams.synchronizeEvent(event);
        } else {
            Cuda.synchronizeEvent(context, event);
        }
    }

    /** Returns a description: "CudaStream 0x7f12 on CUDA device 0". */
    public static String describe(String kind, long handle, Object device) {
        return (handle == 0 ? kind : kind + " 0x" + Long.toHexString(handle)) + " on " + device;
    }
}
