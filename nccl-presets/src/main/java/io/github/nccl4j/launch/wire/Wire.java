package io.github.nccl4j.launch.wire;

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
 * Protocol between a rank and the store, and encoding of its frames.
 *
 * <ol>
 *   <li>Greeting, server to client: {@link #MAGIC}, {@link #VERSION}, {@link #WITH_SECRET} or {@link #WITHOUT_SECRET}, nonce.
 *   <li>Hello, client to server: the same, and the client's proof if both have a secret. To a server of another version the
 *       client sends instead: {@link #MAGIC}, its {@link #VERSION}, its rank, its {@link #RELEASE}; and it leaves.
 *   <li>Proof, server to client: status and the server's proof, or status and reason of a refusal. With a secret, all further
 *       frames are sealed.
 *   <li>Join, client to server: rank, world size, attempt, local rank, job, process, interval of its heartbeats and
 *       its patience; or {@link #OBSERVER}
 *       alone. The response is a status, with the attempt of the rank, or with the reason of a refusal.
 *   <li>Requests, with a number and an {@link Operation}. A response has the number and a status. The server also sends a
 *       {@link Notice}, a {@link #QUESTION} or a close notice, which have numbers that no request has.
 *   <li>Requests of an observer: a number and a timeout in nanoseconds. The response is several frames, each with the number and
 *       a part of {@link Look}.
 * </ol>
 */
public final class Wire {
    /** "nccl4jST" in ASCII; distinguishes the store from another service at the port. */
    public static final long MAGIC = 0x6e63636c346a5354L;

    public static final byte VERSION = 5;

    /** The release of nccl4j, in a frame before the proof: at most 32 characters. */
    public static final String RELEASE = release(Wire.class.getPackage().getImplementationVersion());

    public static final byte WITHOUT_SECRET = 0;
    public static final byte WITH_SECRET = 1;
    public static final int NONCE_BYTES = 32;
    public static final int PROOF_BYTES = 32;

    /** Limit of a frame before the proof, so that a stranger can't make the store allocate more. */
    public static final int MAX_HELLO = Long.BYTES + 2 + NONCE_BYTES + PROOF_BYTES;

    public static final int MAX_JOIN = 1 << 12;
    public static final int MAX_KEY = 1 << 10;

    /** Limit for the parts of a request other than its key, ranks and value. */
    public static final int REQUEST_HEADER_BYTES = 64;

    /** Number of the unrequested response with which the store announces that it closes; no request has it. */
    public static final int CLOSE_NOTICE = 0;

    /** Number of the unrequested response that is a {@link Notice}; no request has it. */
    public static final int NOTICE = -1;

    /** Number of the unrequested response that asks a rank for its status, by {@link Operation#REPORT}; no request has it. */
    public static final int QUESTION = -2;

    /** In place of a rank: the client looks at the jobs, and is no rank. */
    public static final int OBSERVER = -1;

    /** Limit of the status of one rank. */
    public static final int MAX_REPORT = 1 << 14;

    /** Limit of the other parts of a frame to an observer. */
    public static final int LOOK_HEADER_BYTES = 1 << 13;

    public static final byte OK = 0;
    public static final byte FAILED = 1;
    public static final byte TIMED_OUT = 2;

    /** Refusal that the client retries: the store may belong to an earlier attempt, which ends soon. */
    public static final byte ANOTHER_JOB = 3;

    /** Status of a close notice: the rank whose process keeps the store ends while it is a member of a group. */
    public static final byte KEEPER_LOST = 4;

    /** Status of a close notice: the store has told the other ranks that this one is lost. */
    public static final byte DECLARED_LOST = 5;

    /** The operations of requests; their order is that of their codes on the wire. */
    public enum Operation {
        SET,
        GET,
        AWAIT,
        ADD,
        DELETE,
        COLLECTIVE,
        ABORT,
        GONE,
        LEAVE,
        ENTER,
        EXIT,
        HEARTBEAT,
        REPORT;

        private static final Operation[] ALL = values();

        public static Operation read(ByteBuffer frame) throws IOException {
            int code = frame.get();
            if (code < 0 || code >= ALL.length) {
                throw new IOException("operation code must be from 0 to " + (ALL.length - 1) + ": " + code);
            }
            return ALL[code];
        }
    }

    /** The parts of a response to an observer; their order is that of the codes on the wire. */
    public enum Look {
        /** A job: its name, attempt and size. */
        JOB,
        /** A rank: the index of its job, its number, its state, its process, its silence in nanoseconds, its report. */
        RANK,
        /** The end of the response. */
        END;

        private static final Look[] ALL = values();

        public static Look read(ByteBuffer frame) throws IOException {
            int code = frame.get();
            if (code < 0 || code >= ALL.length) {
                throw new IOException("code of a part must be from 0 to " + (ALL.length - 1) + ": " + code);
            }
            return ALL[code];
        }
    }

    private Wire() {}

    private static String release(String version) {
        return version == null ? "of an unknown release" : version.substring(0, Math.min(version.length(), 32));
    }

    /** Reads a part of a frame. */
    public interface Reader<T> {
        public T read(ByteBuffer frame) throws IOException;
    }

    /** Applies a reader and reports a frame that is too short as an IOException, as any other invalid frame. */
    public static <T> T read(ByteBuffer frame, Reader<T> reader) throws IOException {
        try {
            return reader.read(frame);
        } catch (BufferUnderflowException tooShort) {
            throw new IOException("a frame is too short", tooShort);
        }
    }

    public static byte[] bytes(ByteBuffer frame) throws IOException {
        int length = frame.getInt();
        if (length < 0 || length > frame.remaining()) {
            throw new IOException("length of a value must be from 0 to " + frame.remaining() + ": " + length);
        }
        byte[] bytes = new byte[length];
        frame.get(bytes);
        return bytes;
    }

    public static String text(ByteBuffer frame) throws IOException {
        return new String(bytes(frame), StandardCharsets.UTF_8);
    }

    public static List<Integer> numbers(ByteBuffer frame) throws IOException {
        int count = frame.getInt();
        int max = frame.remaining() / Integer.BYTES;
        if (count < 0 || count > max) {
            throw new IOException("length of a list must be from 0 to " + max + ": " + count);
        }
        List<Integer> numbers = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            numbers.add(frame.getInt());
        }
        return numbers;
    }

    /** Builds the content of a frame. */
    public static final class Frame {
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

        public Frame operation(Operation operation) {
            return number8(operation.ordinal());
        }

        public Frame number8(int value) {
            return write(() -> out.writeByte(value));
        }

        public Frame number32(int value) {
            return write(() -> out.writeInt(value));
        }

        public Frame number64(long value) {
            return write(() -> out.writeLong(value));
        }

        public Frame raw(byte[] value) {
            return write(() -> out.write(value));
        }

        public Frame bytes(byte[] value) {
            return number32(value.length).raw(value);
        }

        public Frame text(String value) {
            return bytes(value.getBytes(StandardCharsets.UTF_8));
        }

        public Frame numbers(List<Integer> values) {
            number32(values.size());
            values.forEach(this::number32);
            return this;
        }

        public byte[] toBytes() {
            return bytes.toByteArray();
        }
    }
}
