package io.github.nccl4j.highlevel;

/** Streams and events of a device: those of CUDA, or, of host memory, those of the host engine. */
final class DeviceStreams {
    private DeviceStreams() {}

    static long createStream(Device device, boolean nonBlocking) {
        return device.isHost() ? HostStreams.createStream() : Cuda.createStream(device, nonBlocking);
    }

    static void destroyStream(Device device, long stream) {
        if (device.isHost()) {
            HostStreams.destroyStream(stream);
        } else {
            Cuda.destroyStream(device, stream);
        }
    }

    static boolean streamIsDone(Device device, long stream) {
        return device.isHost() ? HostStreams.streamIsDone(stream) : Cuda.streamIsDone(device, stream);
    }

    static void synchronizeStream(Device device, long stream) {
        if (device.isHost()) {
            HostStreams.synchronizeStream(stream);
        } else {
            Cuda.synchronizeStream(device, stream);
        }
    }

    static void waitForEvent(Device device, long stream, long event) {
        if (device.isHost()) {
            HostStreams.waitForEvent(stream, event);
        } else {
            Cuda.waitForEvent(device, stream, event);
        }
    }

    static long createEvent(Device device, boolean timing) {
        return device.isHost() ? HostStreams.createEvent() : Cuda.createEvent(device, timing);
    }

    static void destroyEvent(Device device, long event) {
        if (device.isHost()) {
            HostStreams.destroyEvent(event);
        } else {
            Cuda.destroyEvent(device, event);
        }
    }

    static void recordEvent(Device device, long event, long stream) {
        if (device.isHost()) {
            HostStreams.recordEvent(event, stream);
        } else {
            Cuda.recordEvent(device, event, stream);
        }
    }

    static boolean eventIsDone(Device device, long event) {
        return device.isHost() ? HostStreams.eventIsDone(event) : Cuda.eventIsDone(device, event);
    }

    /** As {@link #eventIsDone} without an effect on captures of other threads. Failed work is not done. */
    static boolean eventIsDoneWhileCapturing(Device device, long event) {
        return device.isHost()
                ? HostStreams.eventIsDoneWithoutError(event)
                : Cuda.eventIsDoneWhileCapturing(device, event);
    }

    static void synchronizeEvent(Device device, long event) {
        if (device.isHost()) {
            HostStreams.synchronizeEvent(event);
        } else {
            Cuda.synchronizeEvent(device, event);
        }
    }

    /** Returns a description: "CudaStream 0x7f12 on CUDA device 0". */
    static String describe(String kind, long handle, Device device) {
        return (handle == 0 ? kind : kind + " 0x" + Long.toHexString(handle)) + " on " + device;
    }
}
