package io.github.nccl4j.internal.log;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * Reads lines that are appended to a file. NCCL writes to a file instead of a pipe, because it would block on a full
 * pipe; a file keeps the lines for a slow reader.
 */
public final class LogFile {
    private static final int CHUNK = 1 << 16;
    private static final int LONGEST_LINE = 1 << 16;

    private final Path path;
    private final Consumer<String> lines;
    private final ByteBuffer chunk = ByteBuffer.allocate(CHUNK);
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private long position;

    /** Creates a reader that starts at a position. */
    public LogFile(Path path, long position, Consumer<String> lines) {
        this.path = path;
        this.position = position;
        this.lines = lines;
    }

    /** Passes on every line that is complete. */
    public synchronized void read() throws IOException {
        try (FileChannel file = FileChannel.open(path)) {
            if (file.size() < position) {
                // The file was truncated: its writer started again at the beginning.
                position = 0;
                line.reset();
            }
            while (file.read(chunk.clear(), position) > 0) {
                position += chunk.position();
                for (int i = 0; i < chunk.position(); i++) {
                    take(chunk.get(i));
                }
            }
        }
    }

    private void take(byte next) {
        if (next != '\n') {
            line.write(next);
        }
        if (next == '\n' || line.size() == LONGEST_LINE) {
            // NCCL puts an empty line before each warning.
            if (line.size() > 0) {
                lines.accept(line.toString(StandardCharsets.UTF_8));
            }
            line.reset();
        }
    }
}
