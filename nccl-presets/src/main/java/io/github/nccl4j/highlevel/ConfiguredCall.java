package io.github.nccl4j.highlevel;

import java.lang.ref.Reference;

/**
 * What a call with a {@link CollectiveConfig} keeps alive: the configuration, which NCCL may read until it has launched the
 * call, and the event in it, which is the device's until the call and the graph that has captured it are done.
 *
 * <p>For one thread, that of the call or of the group.
 */
final class ConfiguredCall implements AutoCloseable {
    private final CommunicatorCore core;
    private final CollectiveConfig config;
    private final long struct;
    private final CudaStream stream;
    /** Null if there is none. Pinned, as the stream is then, until the call has been launched. */
    private final CudaEvent event;

    private boolean isOver;

    private ConfiguredCall(
            CommunicatorCore core, CollectiveConfig config, long struct, CudaStream stream, CudaEvent event) {
        this.core = core;
        this.config = config;
        this.struct = struct;
        this.stream = stream;
        this.event = event;
    }

    /** Begins a call in an open stream of the communicator's device. */
    static ConfiguredCall begin(CommunicatorCore core, CollectiveConfig config, CudaStream stream) {
        long struct = config.struct(core.library());
        CudaEvent event = config.launchCompletionEvent();
        if (event != null) {
            if (event.device() != core.device()) {
                throw new IllegalArgumentException("launchCompletionEvent must be on the communicator's device: "
                        + event + ", the communicator is on " + core.device());
            }
            event.pin();
            boolean pinned = false;
            try {
                stream.pin();
                pinned = true;
            } finally {
                if (!pinned) {
                    event.unpin();
                }
            }
        }
        return new ConfiguredCall(core, config, struct, stream, event);
    }

    CommunicatorCore core() {
        return core;
    }

    CollectiveConfig config() {
        return config;
    }

    /** Where NCCL reads the configuration. */
    long struct() {
        return struct;
    }

    /** Null if there is none. */
    CudaEvent event() {
        return event;
    }

    /** NCCL has put the call into the stream. */
    void launched() {
        isOver = true;
        CudaGraph graph = CudaGraph.capturing(stream);
        if (graph != null) {
            graph.keep(this::keepReachable);
        }
        if (event != null) {
            event.markRecorded();
            try {
                InFlight.keep(stream, 0, event::unpin);
            } finally {
                stream.unpin();
            }
        }
        keepReachable();
    }

    /** Ends what was not launched, or is still being launched by a call that was given up. */
    @Override
    public void close() {
        if (!isOver) {
            isOver = true;
            if (core.isStuckNow()) {
                core.keepUntilEnded(this::release);
            } else {
                release();
            }
        }
    }

    private void release() {
        keepReachable();
        if (event != null) {
            event.unpin();
            stream.unpin();
        }
    }

    private void keepReachable() {
        Reference.reachabilityFence(config);
    }
}
