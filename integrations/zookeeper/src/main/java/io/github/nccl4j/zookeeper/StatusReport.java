package io.github.nccl4j.zookeeper;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The answer of a rank to an observer.
 *
 * @param texts the texts by topic
 * @param omitted the number of texts that were omitted because the answer would be too long
 */
record StatusReport(Map<String, String> texts, int omitted) {
    /** The texts of a rank together, in bytes. */
    private static final int MAX_BYTES = 16 << 10;

    byte[] toBytes() {
        ByteArrayOutputStream entries = new ByteArrayOutputStream();
        int left = MAX_BYTES;
        int skipped = omitted;
        try {
            for (Map.Entry<String, String> one : texts.entrySet()) {
                byte[] topic = Text.bytes(one.getKey());
                byte[] text = Text.bytes(one.getValue());
                int length = 2 * Integer.BYTES + topic.length + text.length;
                if (length > left) {
                    skipped++;
                    continue;
                }
                left -= length;
                DataOutputStream entry = new DataOutputStream(entries);
                entry.writeInt(topic.length);
                entry.write(topic);
                entry.writeInt(text.length);
                entry.write(text);
            }
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            new DataOutputStream(all).writeInt(skipped);
            entries.writeTo(all);
            return all.toByteArray();
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    /** Reads what a rank has written. Throws an exception if that is no report. */
    static StatusReport of(byte[] bytes) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
        int omitted = in.readInt();
        Map<String, String> texts = new LinkedHashMap<>();
        while (in.available() > 0) {
            String topic = text(in);
            texts.put(topic, text(in));
        }
        return new StatusReport(texts, omitted);
    }

    private static String text(DataInputStream in) throws IOException {
        int length = in.readInt();
        if (length < 0 || length > in.available()) {
            throw new IOException("a text of a status must have >= 0 and <= " + in.available() + " bytes: " + length);
        }
        return Text.text(in.readNBytes(length));
    }
}
