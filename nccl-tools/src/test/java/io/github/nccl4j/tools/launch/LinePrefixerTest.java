package io.github.nccl4j.tools.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.junit.jupiter.api.Test;

class LinePrefixerTest {
    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private final PrintStream out = new PrintStream(written, false, StandardCharsets.UTF_8);

    private String prefixed(InputStream in) {
        new LinePrefixer(in, out, this, () -> "[3] ").run();
        return written.toString(StandardCharsets.UTF_8);
    }

    private String prefixed(String text) {
        return prefixed(new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)));
    }

    /** A stream that returns one of the pieces per read, and then fails. */
    private static InputStream pieces(Iterator<byte[]> pieces) {
        return new InputStream() {
            @Override
            public int read() {
                throw new UnsupportedOperationException();
            }

            @Override
            public int read(byte[] to, int offset, int length) throws IOException {
                if (!pieces.hasNext()) {
                    throw new IOException("closed");
                }
                byte[] piece = pieces.next();
                System.arraycopy(piece, 0, to, offset, piece.length);
                return piece.length;
            }
        };
    }

    @Test
    void prefixesEachLine() {
        assertEquals("[3] a\n[3] \n[3] é\n", prefixed("a\n\né\n"));
    }

    @Test
    void endsTheLastLine() {
        assertEquals("[3] a\n[3] b\n", prefixed("a\nb"));
    }

    @Test
    void emptyInputGivesEmptyOutput() {
        assertEquals("", prefixed(""));
    }

    /** The input breaks after the last piece; the incomplete line is written then. */
    @Test
    void writesALineWhenItIsComplete() {
        List<String> afterEach = new ArrayList<>();
        List<String> parts = List.of("a", "b\nc", "d");
        Iterator<String> left = parts.iterator();
        Iterator<byte[]> bytes = new Iterator<>() {
            @Override
            public boolean hasNext() {
                afterEach.add(written.toString(StandardCharsets.UTF_8));
                return left.hasNext();
            }

            @Override
            public byte[] next() {
                return left.next().getBytes(StandardCharsets.UTF_8);
            }
        };
        assertEquals("[3] ab\n[3] cd\n", prefixed(pieces(bytes)));
        assertEquals(List.of("", "", "[3] ab\n", "[3] ab\n"), afterEach);
    }

    @Test
    void splitsLongLines() {
        String text = "x".repeat((1 << 20) + 1);
        assertEquals("[3] " + text.substring(1) + "\n[3] x\n", prefixed(text));
    }

    /** The launcher waits while a prefixer writes. */
    @Test
    void isWritingWhileOutputIsPending() {
        List<Boolean> writing = new ArrayList<>();
        LinePrefixer[] prefixer = new LinePrefixer[1];
        PrintStream watching =
                new PrintStream(calling(() -> writing.add(prefixer[0].isWriting())), false, StandardCharsets.UTF_8);
        Iterator<byte[]> bytes = new Iterator<>() {
            private int n;

            @Override
            public boolean hasNext() {
                writing.add(prefixer[0].isWriting());
                return n < 1;
            }

            @Override
            public byte[] next() {
                n++;
                return "a\nb".getBytes(StandardCharsets.UTF_8);
            }
        };
        prefixer[0] = new LinePrefixer(pieces(bytes), watching, this, () -> "");
        prefixer[0].run();
        // At the first read, at the first write, at the second read, and at the write of the rest.
        assertEquals(List.of(false, true, false, true), writing);
        assertFalse(prefixer[0].isWriting());
    }

    private static OutputStream calling(Runnable call) {
        return new OutputStream() {
            @Override
            public void write(int one) {
                throw new UnsupportedOperationException();
            }

            @Override
            public void write(byte[] bytes, int offset, int length) {
                call.run();
            }
        };
    }
}
