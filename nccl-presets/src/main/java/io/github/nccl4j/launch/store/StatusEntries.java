package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.StatusEntry;
import io.github.nccl4j.launch.wire.Wire;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/** The status of one rank: the texts with which it answers the questions of observers. Thread-safe. */
final class StatusEntries {
    private final StoreSession store;
    private final Map<String, Supplier<String>> texts = new ConcurrentHashMap<>();

    StatusEntries(StoreSession store) {
        this.store = store;
    }

    StatusEntry add(String topic, Supplier<String> text) {
        store.requireOpen();
        if (texts.putIfAbsent(topic, text) != null) {
            throw new IllegalArgumentException("a topic must have one text at most: " + topic);
        }
        return () -> texts.remove(topic, text);
    }

    /**
     * Starts the answer to the question of the store. In the thread of the connection, which must not wait for the
     * texts.
     */
    void answer() {
        Inquiries.answerInBackground(() -> {
            try {
                store.requestAsync(Wire.Operation.REPORT, new Wire.Frame().bytes(report()));
            } catch (IllegalStateException closed) {
                // The session is closed: the store can't get the answer.
            }
        });
    }

    /** The number of omitted texts, the number of the others, and these with their topics. */
    private byte[] report() {
        Wire.Frame entries = new Wire.Frame();
        int length = 2 * Integer.BYTES;
        int count = 0;
        int omitted = 0;
        for (Map.Entry<String, Supplier<String>> one : texts.entrySet()) {
            String text;
            try {
                text = one.getValue().get();
            } catch (RuntimeException | Error failed) {
                text = failed.toString();
            }
            byte[] entry = new Wire.Frame().text(one.getKey()).text(text).toBytes();
            if (length + entry.length > Wire.MAX_REPORT) {
                omitted++;
            } else {
                length += entry.length;
                entries.raw(entry);
                count++;
            }
        }
        return new Wire.Frame()
                .number32(omitted)
                .number32(count)
                .raw(entries.toBytes())
                .toBytes();
    }
}
