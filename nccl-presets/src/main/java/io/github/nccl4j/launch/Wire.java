package io.github.nccl4j.launch;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * What travels between a rank and the store.
 *
 * <ol>
 *   <li>The store greets: {@link #MAGIC}, {@link #VERSION}, whether it has a secret, its nonce.
 *   <li>The rank answers: magic, version, its nonce and proof if there is a secret. Then, sealed if there is one, who it is.
 *   <li>The store answers with its own proof, or why it refuses; then, sealed, whether the rank has joined.
 *   <li>Requests, each with a number and an {@link Operation}; answers with the number and a status.
 * </ol>
 */
final class Wire {
    /** "nccl4jST", so that another service at the port is told apart. */
    static final long MAGIC = 0x6e63636c346a5354L;

    static final byte VERSION = 2;
    static final byte WITHOUT_SECRET = 0;
    static final byte WITH_SECRET = 1;
    static final int NONCE_BYTES = 32;
    static final int PROOF_BYTES = 32;

    /** Before a rank is known. */
    static final int MAX_HELLO = Long.BYTES + 2 + NONCE_BYTES + PROOF_BYTES;

    static final int MAX_JOIN = 1 << 12;
    static final int MAX_KEY = 1 << 10;

    /** What a request has beside its value, keys and ranks. */
    static final int REQUEST_HEADER_BYTES = 64;

    /** The number of what the store says without having been asked: why it ends. */
    static final int CLOSE_NOTICE = 0;

    static final byte OK = 0;
    static final byte FAILED = 1;
    static final byte TIMED_OUT = 2;

    /** Refused, but the store may be that of an earlier attempt, and the right one may come yet. */
    static final byte ANOTHER_JOB = 3;

    /** The kinds of requests; their order is that of their codes. */
    enum Operation {
        SET,
        GET,
        AWAIT,
        ADD,
        DELETE,
        COLLECTIVE,
        ABORT,
        GONE,
        LEAVE;

        private static final Operation[] ALL = values();

        static Operation read(ByteBuffer frame) throws IOException {
            int code = frame.get();
            if (code < 0 || code >= ALL.length) {
                throw new IOException("no such operation: " + code);
            }
            return ALL[code];
        }
    }

    private Wire() {}

    /** Reads a frame; one that is too short ends the connection like any other nonsense. */
    interface Reader<T> {
        T read(ByteBuffer frame) throws IOException;
    }

    static <T> T read(ByteBuffer frame, Reader<T> reader) throws IOException {
        try {
            return reader.read(frame);
        } catch (BufferUnderflowException shorter) {
            throw new IOException("a frame ends too early", shorter);
        }
    }

    static byte[] bytes(ByteBuffer frame) throws IOException {
        int length = frame.getInt();
        if (length < 0 || length > frame.remaining()) {
            throw new IOException("a value of " + length + " bytes in a frame of " + frame.remaining());
        }
        byte[] bytes = new byte[length];
        frame.get(bytes);
        return bytes;
    }

    static String text(ByteBuffer frame) throws IOException {
        return new String(bytes(frame), StandardCharsets.UTF_8);
    }

    static List<Integer> numbers(ByteBuffer frame) throws IOException {
        int count = frame.getInt();
        if (count < 0 || count > frame.remaining() / Integer.BYTES) {
            throw new IOException("a list of " + count + " numbers in a frame of " + frame.remaining() + " bytes");
        }
        List<Integer> numbers = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            numbers.add(frame.getInt());
        }
        return numbers;
    }

    /** Writes a frame. */
    static final class Frame {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(REQUEST_HEADER_BYTES);
        private final DataOutputStream out = new DataOutputStream(bytes);

        private interface Write {
            void run() throws IOException;
        }

        private Frame write(Write write) {
            try {
                write.run();
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
            return this;
        }

        Frame operation(Operation operation) {
            return number8(operation.ordinal());
        }

        Frame number8(int value) {
            return write(() -> out.writeByte(value));
        }

        Frame number32(int value) {
            return write(() -> out.writeInt(value));
        }

        Frame number64(long value) {
            return write(() -> out.writeLong(value));
        }

        Frame raw(byte[] value) {
            return write(() -> out.write(value));
        }

        Frame bytes(byte[] value) {
            return number32(value.length).raw(value);
        }

        Frame text(String value) {
            return bytes(value.getBytes(StandardCharsets.UTF_8));
        }

        Frame numbers(List<Integer> values) {
            number32(values.size());
            values.forEach(this::number32);
            return this;
        }

        byte[] toBytes() {
            return bytes.toByteArray();
        }
    }
}
