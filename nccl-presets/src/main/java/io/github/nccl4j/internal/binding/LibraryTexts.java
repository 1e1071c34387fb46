package io.github.nccl4j.internal.binding;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Searches the texts among the constants of a library's file. Reads only the read-only data, the section .rodata,
 * since a library has hundreds of megabytes of GPU code.
 *
 * <p>Not thread-safe.
 */
public final class LibraryTexts {
    private static final int FILE_HEADER_SIZE = 64;
    private static final int SECTION_HEADER_SIZE = 64;

    private final ByteBuffer data;

    private LibraryTexts(ByteBuffer data) {
        this.data = data;
    }

    /** The texts of a file; empty if the file is not a 64-bit ELF file, or has no read-only data. */
    public static Optional<LibraryTexts> of(Path library) throws IOException {
        try (FileChannel file = FileChannel.open(library)) {
            return readOnlyData(file).map(LibraryTexts::new);
        }
    }

    public boolean contain(String text) {
        return indexOf(text, 0) >= 0;
    }

    /** The first index of a text, not before {@code from}; -1 if there is none. */
    public int indexOf(String text, int from) {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        for (int i = from; i + bytes.length <= data.limit(); i++) {
            if (isAt(bytes, i)) {
                return i;
            }
        }
        return -1;
    }

    /** The characters from an index on, at most {@code longest}. */
    public String at(int offset, int longest) {
        byte[] text = new byte[Math.min(longest, data.limit() - offset)];
        data.get(offset, text);
        return new String(text, StandardCharsets.ISO_8859_1);
    }

    private boolean isAt(byte[] bytes, int offset) {
        for (int i = 0; i < bytes.length; i++) {
            if (data.get(offset + i) != bytes[i]) {
                return false;
            }
        }
        return true;
    }

    /** Maps the section .rodata. */
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
