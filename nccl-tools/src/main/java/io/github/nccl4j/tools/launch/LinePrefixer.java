package io.github.nccl4j.tools.launch;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.function.Supplier;

/**
 * Copies an output stream of a rank and puts a prefix before each line. A line is written in one piece, even if it arrives in
 * several. Runs in its own thread; {@link #isWriting} may be called from any thread.
 */
final class LinePrefixer implements Runnable {

    private static final int BUFFER_BYTES = 8192;

    /** Longer lines are split, so that a rank that never ends a line cannot exhaust the launcher's memory. */
    private static final int MAX_LINE_BYTES = 1 << 20;

    private final InputStream in;
    private final PrintStream out;
    private final Object lock;
    private final Supplier<String> prefix;
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private final ByteArrayOutputStream completeLines = new ByteArrayOutputStream();
    private volatile boolean writing;

    /**
     * Creates a prefixer.
     *
     * @param in the output of the rank
     * @param out receives the lines
     * @param lock shared by all prefixers whose output may appear on the same terminal
     * @param prefix the prefix of the next line
     */
    LinePrefixer(InputStream in, PrintStream out, Object lock, Supplier<String> prefix) {
        this.in = in;
        this.out = out;
        this.lock = lock;
        this.prefix = prefix;
    }

    /** True while bytes that were read are not written yet; a slow reader of the output can prolong this. */
    boolean isWriting() {
        return writing;
    }

    @Override
    public void run() {
        byte[] buffer = new byte[BUFFER_BYTES];
        try (in) {
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                writing = true;
                accept(buffer, n);
                flush();
                writing = false;
            }
        } catch (IOException e) {
            // The rank has ended; the finally block writes the rest.
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
                if (line.size() == MAX_LINE_BYTES) {
                    endLine();
                }
            }
        }
    }

    private void endLine() {
        completeLines.writeBytes(prefix.get().getBytes(StandardCharsets.UTF_8));
        completeLines.writeBytes(line.toByteArray());
        completeLines.write('\n');
        line.reset();
    }

    private void flush() {
        if (completeLines.size() == 0) {
            return;
        }
        synchronized (lock) {
            out.writeBytes(completeLines.toByteArray());
            out.flush();
        }
        completeLines.reset();
    }
}
