package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeEvent;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.NativeStream;
import io.github.nccl4j.internal.cuda.PendingReleases;
import java.lang.ref.Reference;

/**
 * Keeps the resources of a call with a {@link CallConfig} alive: the configuration, which NCCL may read until it
 * has launched the call, and its event, which the device uses until the call and the graph that has captured the call
 * are done.
 *
 * <p>Confined to the thread of the call or of the group.
 */
public final class ConfiguredCall implements AutoCloseable {
    private final CommunicatorCore core;
    private final CallConfig config;
    private final long struct;
    private final NativeStream stream;
    /** Null if the configuration has no event. The event and then also the stream are pinned until the call is launched. */
    private final NativeEvent event;

    private boolean isOver;

    private ConfiguredCall(
            CommunicatorCore core, CallConfig config, long struct, NativeStream stream, NativeEvent event) {
        this.core = core;
        this.config = config;
        this.struct = struct;
        this.stream = stream;
        this.event = event;
    }

    /** Begins a call. The stream must be open and on the communicator's device. */
    public static ConfiguredCall begin(CommunicatorCore core, CallConfig config, NativeStream stream) {
        long struct = config.struct(core.library());
        NativeEvent event = config.launchCompletionEvent();
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

    public CommunicatorCore core() {
        return core;
    }

    public CallConfig config() {
        return config;
    }

    /** The address of the native configuration. */
    public long struct() {
        return struct;
    }

    /** Null if the configuration has no event. */
    public NativeEvent event() {
        return event;
    }

    /** Must be called after NCCL has put the call into the stream. */
    public void launched() {
        isOver = true;
        NativeGraph graph = NativeGraph.capturing(stream);
        if (graph != null) {
            graph.keep(this::keepReachable);
        }
        if (event != null) {
            event.markRecorded(stream);
            try {
                PendingReleases.add(stream, 0, event::unpin);
            } finally {
                stream.unpin();
            }
        }
        keepReachable();
    }

    /** Releases the resources of a call that was not launched; later, if an abandoned call may still launch it. */
    @Override
    public void close() {
        if (!isOver) {
            isOver = true;
            if (core.isStuckNow()) {
                core.owned().keepUntilEnded(this::release);
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
