package io.github.nccl4j.mutation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The lines that have run, a byte each in a file that all JVMs map: a JVM that is killed has told of its lines, too. {@link Probes}
 * gives each package a copy of this class, which therefore refers to none of ours.
 */
final class Hits {
    private static final MappedByteBuffer BYTES = map("@file@");

    private Hits() {}

    static void hit(int at) {
        BYTES.put(at, (byte) 1);
    }

    private static MappedByteBuffer map(String file) {
        try (FileChannel channel = FileChannel.open(Path.of(file), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return channel.map(FileChannel.MapMode.READ_WRITE, 0, channel.size());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
