package io.github.nccl4j.highlevel;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads the text "NCCL version 2.28.3+cuda13.0" from the constants of a library, the only source of its CUDA release.
 * Reads only the read-only data of the file, which has hundreds of megabytes of GPU code.
 */
final class CudaBanner {
    private static final byte[] START = "NCCL version ".getBytes(StandardCharsets.US_ASCII);
    private static final Pattern BANNER = Pattern.compile("\\d+\\.\\d+\\.\\d+\\S*?\\+cuda(\\d+(?:\\.\\d+)*)");
    private static final int LONGEST = 64;

    private static final int FILE_HEADER_SIZE = 64;
    private static final int SECTION_HEADER_SIZE = 64;

    private CudaBanner() {}

    /**
     * Returns the CUDA release that a library was built for; empty if it has no such text, or is not a 64-bit ELF file.
     */
    static Optional<String> read(Path library) throws IOException {
        try (FileChannel file = FileChannel.open(library)) {
            Optional<ByteBuffer> data = readOnlyData(file);
            return data.isEmpty() ? Optional.empty() : find(data.get());
        }
    }

    private static Optional<String> find(ByteBuffer data) {
        for (int i = 0; i + START.length < data.limit(); i++) {
            if (startsAt(data, i)) {
                byte[] text = new byte[Math.min(LONGEST, data.limit() - i - START.length)];
                data.get(i + START.length, text);
                Matcher banner = BANNER.matcher(new String(text, StandardCharsets.ISO_8859_1));
                if (banner.lookingAt()) {
                    return Optional.of(banner.group(1));
                }
            }
        }
        return Optional.empty();
    }

    private static boolean startsAt(ByteBuffer data, int position) {
        for (int i = 0; i < START.length; i++) {
            if (data.get(position + i) != START[i]) {
                return false;
            }
        }
        return true;
    }

    /** The section .rodata. */
    private static Optional<ByteBuffer> readOnlyData(FileChannel file) throws IOException {
        if (file.size() < FILE_HEADER_SIZE) {
            return Optional.empty();
        }
        ByteBuffer header = map(file, 0, FILE_HEADER_SIZE);
        boolean elf64 = header.getInt(0) == 0x464c457f && header.get(4) == 2 && header.get(5) == 1;
        long table = header.getLong(0x28);
        int sections = Short.toUnsignedInt(header.getShort(0x3c));
        int names = Short.toUnsignedInt(header.getShort(0x3e));
        if (!elf64 || names >= sections || !lies(file, table, (long) sections * SECTION_HEADER_SIZE)) {
            return Optional.empty();
        }
        ByteBuffer headers = map(file, table, (long) sections * SECTION_HEADER_SIZE);
        Optional<ByteBuffer> texts = section(file, headers, names);
        for (int i = 0; texts.isPresent() && i < sections; i++) {
            if (text(texts.get(), headers.getInt(i * SECTION_HEADER_SIZE)).equals(".rodata")) {
                return section(file, headers, i);
            }
        }
        return Optional.empty();
    }

    private static Optional<ByteBuffer> section(FileChannel file, ByteBuffer headers, int index) throws IOException {
        long offset = headers.getLong(index * SECTION_HEADER_SIZE + 0x18);
        long size = headers.getLong(index * SECTION_HEADER_SIZE + 0x20);
        return lies(file, offset, size) ? Optional.of(map(file, offset, size)) : Optional.empty();
    }

    private static boolean lies(FileChannel file, long offset, long size) throws IOException {
        return offset >= 0 && size >= 0 && size <= Integer.MAX_VALUE && offset <= file.size() - size;
    }

    private static ByteBuffer map(FileChannel file, long offset, long size) throws IOException {
        return file.map(MapMode.READ_ONLY, offset, size).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static String text(ByteBuffer texts, int start) {
        StringBuilder text = new StringBuilder();
        for (int i = start; i >= 0 && i < texts.limit() && texts.get(i) != 0; i++) {
            text.append((char) texts.get(i));
        }
        return text.toString();
    }
}
