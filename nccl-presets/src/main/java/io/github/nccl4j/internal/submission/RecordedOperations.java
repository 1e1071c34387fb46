package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.cuda.NativeGraph;
import io.github.nccl4j.internal.cuda.NativeStream;
import java.util.ArrayList;
import java.util.List;

/**
 * Operations of one communicator that a batch has recorded for later launches, and the resources that they keep until
 * {@link #release}. For the communicator's thread.
 */
public final class RecordedOperations {
    private final List<Call> calls;
    /** By call. */
    private final NativeStream[] streams;

    private final List<NativeBuffer> buffers = new ArrayList<>();
    private final List<Object> pinned;

    /** Copies the operations of a batch, and takes over its pins. The batch is to be discarded then. */
    public RecordedOperations(Batch batch, CommunicatorCore core) {
        if (!batch.deferred().isEmpty()) {
            throw new IllegalArgumentException("a plan can only have operations on data, not "
                    + batch.deferred().get(0));
        }
        for (CommunicatorCore one : batch.communicators()) {
            if (one != core) {
                throw new IllegalArgumentException(
                        "a plan can only have operations of its communicator: " + core + ", not of " + one);
            }
        }
        calls = List.copyOf(batch.calls());
        streams = new NativeStream[calls.size()];
        pinned = batch.takePins();
        for (Object one : pinned) {
            if (one instanceof NativeBuffer buffer) {
                buffers.add(buffer);
            } else if (one instanceof NativeStream stream) {
                assign(stream);
            }
        }
    }

    private void assign(NativeStream stream) {
        for (int i = 0; i < streams.length; i++) {
            if (calls.get(i).operation().stream() == stream.handle) {
                streams[i] = stream;
            }
        }
    }

    public boolean isEmpty() {
        return calls.isEmpty();
    }

    /** The call if there is only one, and that has no configuration; else null. */
    public Call only() {
        return calls.size() == 1 && calls.get(0).config() == null ? calls.get(0) : null;
    }

    /** Throws if the memory of a buffer is that of other code, and can't be accessed any more. */
    public void checkMemory() {
        for (NativeBuffer buffer : buffers) {
            buffer.checkMemory();
        }
    }

    /** Adds the operations to a batch, which launches them while the resource is pinned. */
    public void addTo(Batch batch, CommunicatorCore core, Resource resource) {
        batch.pin(resource);
        if (NativeGraph.ofThread() != null) {
            // The graph keeps the buffers for its launches.
            buffers.forEach(batch::pin);
        }
        for (int i = 0; i < streams.length; i++) {
            Call call = calls.get(i);
            batch.add(core, call.operation(), call.config(), streams[i]);
        }
    }

    public void release() {
        pinned.forEach(Batch::unpin);
    }

    @Override
    public String toString() {
        return calls.stream().map(call -> call.operation().describe()).toList().toString();
    }
}
