package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.internal.diagnostics.CommunicatorInfo;
import io.github.nccl4j.internal.log.HostName;
import io.github.nccl4j.internal.log.Json;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.StatusEntry;
import java.lang.ref.WeakReference;
import java.util.List;

/** A rank's answer to an observer about one communicator: one JSON object. */
public final class CommunicatorStatus {
    private static final int MAX_FAILURE_CHARS = 300;

    private CommunicatorStatus() {}

    /** Adds a communicator to the status of its rank; returns null if there is no store that can be observed. */
    public static StatusEntry add(Rendezvous where, CommunicatorInfo communicator) {
        if (where == null) {
            return null;
        }
        // The store must not keep a communicator that the program has dropped.
        WeakReference<CommunicatorInfo> weak = new WeakReference<>(communicator);
        String identity = communicator.identity();
        try {
            return where.status("communicator-" + identity, () -> json(weak.get(), identity))
                    .orElse(null);
        } catch (IllegalArgumentException | IllegalStateException unavailable) {
            // The store is closed, or another rank of the communicator uses the same store: a communicator works
            // without an entry.
            return null;
        }
    }

    private static String json(CommunicatorInfo communicator, String identity) {
        Json json = new Json();
        json.begin().field("format", "nccl4j communicator 1").field("id", identity);
        if (communicator == null) {
            return json.field("state", "DROPPED").end().toString();
        }
        OperationLog.Snapshot snapshot = communicator.operationLog().snapshot();
        NcclException failure = communicator.failure();
        json.field("name", communicator.name())
                .field("rank", communicator.expectedRank())
                .field("size", communicator.expectedSize())
                .field("world", communicator.worldRank() < 0 ? null : (Integer) communicator.worldRank())
                .field("host", HostName.get())
                .field("process", ProcessHandle.current().pid())
                .field("device", communicator.device().toString())
                .field("state", communicator.state().toString())
                .field("failure", failure == null ? null : shorten(failure.getMessage()))
                .field("recorded", communicator.operationLog().recorded())
                .field("collectives", snapshot.collectives() < 0 ? null : (Long) snapshot.collectives());
        if (!communicator.waitsIn().isEmpty()) {
            json.field("call", communicator.waitsIn())
                    .field("callSeconds", seconds(System.currentTimeMillis() - communicator.waitsSince()));
        }
        addOperations(json, snapshot.entries());
        return json.end().toString();
    }

    private static String shorten(String failure) {
        String line = failure == null ? "" : failure.lines().findFirst().orElse("");
        return line.substring(0, Math.min(line.length(), MAX_FAILURE_CHARS));
    }

    /**
     * Adds the oldest operation that was not observed as done, the last one that was observed as done, and the last
     * call.
     */
    private static void addOperations(Json json, List<OperationLog.Entry> entries) {
        OperationLog.Entry current = null;
        OperationLog.Entry done = null;
        for (int i = entries.size() - 1; i >= 0 && done == null; i--) {
            OperationLog.Entry entry = entries.get(i);
            if (entry.done() == 0) {
                current = entry;
            } else {
                done = entry;
            }
        }
        long now = System.currentTimeMillis();
        if (current != null) {
            json.field("at", current.sequence())
                    .field("operation", current.call())
                    .field("stream", "0x" + Long.toHexString(current.operation().stream()))
                    .field("seconds", current.enqueued() == 0 ? null : seconds(now - current.enqueued()));
        }
        if (done != null) {
            json.field("done", done.sequence())
                    .field("doneOperation", done.call())
                    .field("doneSeconds", seconds(now - done.done()));
        }
    }

    private static Double seconds(long milliseconds) {
        return Math.max(0, milliseconds) / 1e3;
    }
}
