package io.github.nccl4j.launch.wire;

import io.github.nccl4j.launch.RendezvousException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** Message of the root of a broadcast to the other ranks: one byte for the kind, then the value or the reason of a failure. */
public final class BroadcastMessage {
    private static final byte VALUE = 0;
    private static final byte FAILURE = 1;
    public static final int MAX_REASON_CHARS = 2000;

    private BroadcastMessage() {}

    public static void requireRoot(int root, int size) {
        if (root < 0 || root >= size) {
            throw new IllegalArgumentException("root must be >= 0 and < size: " + root + ", size " + size);
        }
    }

    /** Makes the value and sends it; if this fails, sends the reason and throws the failure. Called on the root. */
    public static byte[] send(Supplier<byte[]> value, Consumer<byte[]> sender) {
        byte[] made;
        byte[] message;
        try {
            made = value.get();
            message = encodeValue(made);
        } catch (RuntimeException | Error failure) {
            try {
                sender.accept(encodeFailure(failure));
            } catch (RuntimeException also) {
                failure.addSuppressed(also);
            }
            throw failure;
        }
        sender.accept(message);
        return made;
    }

    private static byte[] encodeValue(byte[] value) {
        if (value.length >= Arguments.LONGEST_VALUE) {
            throw new IllegalArgumentException(
                    "a value must have < " + Arguments.LONGEST_VALUE + " bytes: " + value.length);
        }
        return encode(VALUE, value);
    }

    private static byte[] encodeFailure(Throwable failure) {
        String reason = MessageText.reason(failure);
        return encode(
                FAILURE,
                reason.substring(0, Math.min(reason.length(), MAX_REASON_CHARS)).getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] encode(byte kind, byte[] content) {
        byte[] message = new byte[1 + content.length];
        message[0] = kind;
        System.arraycopy(content, 0, message, 1, content.length);
        return message;
    }

    /** Returns the value of a message of the root; throws the failure that the message has instead. */
    public static byte[] decode(byte[] message, int root) {
        if (message.length == 0) {
            throw new RendezvousException("all ranks must name the same root: rank " + root + " does not name itself");
        }
        byte[] content = Arrays.copyOfRange(message, 1, message.length);
        if (message[0] == FAILURE) {
            throw new RendezvousException("rank " + root + " failed: " + new String(content, StandardCharsets.UTF_8));
        }
        return content;
    }
}
