package io.github.nccl4j.samples.launch;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Copies one stream of a rank, line by line, each line behind the rank's prefix and written in one piece. */
final class LinePrefixer implements Runnable {

    private static final int BUFFER = 8192;
    /** A line longer than this is cut, so that a rank that never ends its line can't fill the launcher's memory. */
    private static final int LONGEST_LINE = 1 << 20;

    private final InputStream in;
    private final PrintStream out;
    private final Object lock;
    private final byte[] prefix;
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private final ByteArrayOutputStream ready = new ByteArrayOutputStream();
    private volatile boolean writing;

    /** The lock is shared by all streams that may end on one terminal. */
    LinePrefixer(InputStream in, PrintStream out, Object lock, String prefix) {
        this.in = in;
        this.out = out;
        this.lock = lock;
        this.prefix = prefix.getBytes(StandardCharsets.UTF_8);
    }

    /** True while a chunk is on its way out, perhaps held up by a slow reader. */
    boolean writing() {
        return writing;
    }

    @Override
    public void run() {
        byte[] buffer = new byte[BUFFER];
        try (in) {
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                writing = true;
                accept(buffer, n);
                flush();
                writing = false;
            }
        } catch (IOException closed) {
            // The rank is gone; what was read is shown below.
        } finally {
            writing = true;
            if (line.size() > 0) {
                endLine();
            }
            flush();
            writing = false;
        }
    }

    private void accept(byte[] buffer, int length) {
        for (int i = 0; i < length; i++) {
            if (buffer[i] == '\n') {
                endLine();
            } else {
                line.write(buffer[i]);
                if (line.size() == LONGEST_LINE) {
                    endLine();
                }
            }
        }
    }

    private void endLine() {
        ready.writeBytes(prefix);
        ready.writeBytes(line.toByteArray());
        ready.write('\n');
        line.reset();
    }

    private void flush() {
        if (ready.size() == 0) {
            return;
        }
        synchronized (lock) {
            out.writeBytes(ready.toByteArray());
            out.flush();
        }
        ready.reset();
    }
}
