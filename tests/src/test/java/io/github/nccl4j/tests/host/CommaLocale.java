package io.github.nccl4j.tests.host;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** A locale with a decimal comma for processes that a test starts, whatever locales the machine has. */
final class CommaLocale {
    private static final int LC_NUMERIC = 1;
    private static final int MAGIC = 0x20031115 ^ LC_NUMERIC;

    private CommaLocale() {}

    /** Writes the locale to a folder, in the form that glibc reads. The environment that makes a process use it. */
    static Map<String, String> in(Path folder) throws IOException {
        // Decimal point, separator and size of groups as text, the first two as characters, and the character set.
        List<byte[]> values = List.of(text(","), text("."), text("\3"), character(','), character('.'), text("UTF-8"));
        ByteBuffer file = ByteBuffer.allocate(128).order(ByteOrder.nativeOrder());
        file.putInt(MAGIC).putInt(values.size());
        int at = file.position() + Integer.BYTES * values.size();
        for (byte[] value : values) {
            file.putInt(at);
            file.put(at, value);
            at += value.length;
        }
        byte[] bytes = new byte[at];
        file.get(0, bytes);
        Files.write(Files.createDirectories(folder.resolve("comma")).resolve("LC_NUMERIC"), bytes);
        // An empty LC_ALL is none.
        return Map.of("LOCPATH", folder.toString(), "LC_NUMERIC", "comma", "LC_ALL", "");
    }

    /** Padded, so that all lie on addresses that are multiples of 4. */
    private static byte[] text(String value) {
        byte[] bytes = value.getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocate((bytes.length / 4 + 1) * 4).put(bytes).array();
    }

    private static byte[] character(char value) {
        return ByteBuffer.allocate(4)
                .order(ByteOrder.nativeOrder())
                .putInt(value)
                .array();
    }
}
