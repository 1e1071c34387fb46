package io.github.nccl4j.launch.store;

import static io.github.nccl4j.testing.Expect.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.BroadcastMessage;
import io.github.nccl4j.launch.wire.Counter;
import io.github.nccl4j.launch.wire.MessageText;
import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Wire;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Tests of the parts of the store's protocol without a connection: arguments, addresses, frames, responses, broadcast messages,
 * counters. Limits are tested at the last valid and the first invalid value.
 */
class ProtocolTest {
    @Test
    void rejectsInvalidKeysAndScopeNames() {
        assertEquals("job/0/a", Arguments.fullKey("job/0/", "a"));
        assertEquals("job/0/", Arguments.scopePrefix("job/", "0"));
        assertEquals("a", Arguments.requireKey("a"));
        assertEquals("a key must not be empty", refused(() -> Arguments.fullKey("job/", "")));
        assertEquals("a key must not contain a slash: a/b", refused(() -> Arguments.requireKey("a/b")));
        assertEquals("the name of a scope must not be empty", refused(() -> Arguments.scopePrefix("", "")));
        assertEquals(
                "the name of a scope must not contain a slash: a/b", refused(() -> Arguments.scopePrefix("", "a/b")));
        String longest = "x".repeat(1024 - 2);
        assertEquals("j/" + longest, Arguments.fullKey("j/", longest));
        assertEquals(
                "a key with its scopes must have <= 1024 bytes: 1025",
                refused(() -> Arguments.fullKey("j/", longest + "y")));
        // The limit is in bytes of UTF-8, not in characters.
        assertEquals(
                "a key with its scopes must have <= 1024 bytes: 1026",
                refused(() -> Arguments.fullKey("", "é".repeat(513))));
    }

    @Test
    void rejectsTooLongValue() {
        byte[] longest = new byte[Rendezvous.LONGEST_VALUE];
        assertSame(longest, Arguments.requireValue(longest));
        assertEquals(
                "a value must have <= " + longest.length + " bytes: " + (longest.length + 1),
                refused(() -> Arguments.requireValue(new byte[longest.length + 1])));
    }

    @Test
    void convertsTimeoutAndRejectsNegative() {
        assertEquals(0, Arguments.nanoseconds(Duration.ZERO));
        assertEquals(1_500_000_000, Arguments.nanoseconds(Duration.ofMillis(1500)));
        assertEquals(Arguments.MAX_NANOSECONDS, Arguments.nanoseconds(Duration.ofNanos(Arguments.MAX_NANOSECONDS)));
        assertEquals(Arguments.MAX_NANOSECONDS, Arguments.nanoseconds(Duration.ofSeconds(Long.MAX_VALUE)));
        assertEquals("timeout must be >= 0: -1 s", refused(() -> Arguments.nanoseconds(Duration.ofSeconds(-1))));
    }

    @Test
    void formatsAddressesAndReasons() {
        assertEquals("node0:29500", Endpoint.format("node0", 29500));
        assertEquals("[::1]:29500", Endpoint.format("::1", 29500));
        assertEquals("::1", Endpoint.withoutBrackets(" [::1] "));
        assertEquals("node0", Endpoint.withoutBrackets("node0"));
        assertEquals("[::1", Endpoint.withoutBrackets("[::1"));
        assertEquals("::1]", Endpoint.withoutBrackets("::1]"));
        assertEquals("late", MessageText.reason(new IOException("late")));
        assertEquals("java.io.IOException", MessageText.reason(new IOException()));
    }

    /* Frames. */

    private static ByteBuffer frame(Wire.Frame frame) {
        return ByteBuffer.wrap(frame.toBytes());
    }

    @Test
    void readsWrittenFrame() throws IOException {
        ByteBuffer frame = frame(new Wire.Frame()
                .operation(Wire.Operation.LEAVE)
                .number8(-2)
                .number32(-3)
                .number64(1L << 40)
                .text("é")
                .bytes(new byte[0])
                .numbers(List.of(4, -5))
                .raw(new byte[] {6}));
        assertEquals(Wire.Operation.LEAVE, Wire.Operation.read(frame));
        assertEquals(-2, frame.get());
        assertEquals(-3, frame.getInt());
        assertEquals(1L << 40, frame.getLong());
        assertEquals("é", Wire.text(frame));
        assertEquals(0, Wire.bytes(frame).length);
        assertEquals(List.of(4, -5), Wire.numbers(frame));
        assertEquals(6, frame.get());
        assertEquals(0, frame.remaining());
    }

    @Test
    void mapsOperationsToCodes() throws IOException {
        for (Wire.Operation operation : Wire.Operation.values()) {
            assertSame(operation, Wire.Operation.read(ByteBuffer.wrap(new byte[] {(byte) operation.ordinal()})));
        }
        for (byte code : new byte[] {-1, (byte) Wire.Operation.values().length}) {
            assertEquals(
                    "operation code must be from 0 to " + (Wire.Operation.values().length - 1) + ": " + code,
                    assertThrows(IOException.class, () -> Wire.Operation.read(ByteBuffer.wrap(new byte[] {code})))
                            .getMessage());
        }
    }

    @Test
    void mapsPartsOfLookToCodes() throws IOException {
        for (Wire.Look part : Wire.Look.values()) {
            assertSame(part, Wire.Look.read(ByteBuffer.wrap(new byte[] {(byte) part.ordinal()})));
        }
        for (byte code : new byte[] {-1, 3}) {
            assertEquals(
                    "code of a part must be from 0 to 2: " + code,
                    assertThrows(IOException.class, () -> Wire.Look.read(ByteBuffer.wrap(new byte[] {code})))
                            .getMessage());
        }
    }

    @Test
    void readsWrittenNotice() throws IOException {
        for (Notice.Kind kind : Notice.Kind.values()) {
            Notice notice = new Notice(kind, "job/g", 3, "process 7", "no heartbeat", 1L << 40);
            ByteBuffer frame = ByteBuffer.wrap(notice.toBytes());
            assertEquals(Wire.NOTICE, frame.getInt());
            assertEquals(notice, Notice.read(frame));
            assertEquals(0, frame.remaining());
        }
        for (byte code : new byte[] {-1, 4}) {
            assertEquals(
                    "kind of a notice must be from 0 to 3: " + code,
                    assertThrows(IOException.class, () -> Notice.read(ByteBuffer.wrap(new byte[] {code})))
                            .getMessage());
        }
    }

    private static String unreadable(Wire.Frame frame, Wire.Reader<?> reader) {
        return assertThrows(IOException.class, () -> Wire.read(frame(frame), reader))
                .getMessage();
    }

    @Test
    void rejectsLengthBeyondFrame() throws IOException {
        assertEquals(
                "length of a value must be from 0 to 1: 2",
                unreadable(new Wire.Frame().number32(2).number8(1), Wire::bytes));
        assertEquals(
                "length of a value must be from 0 to 0: -1", unreadable(new Wire.Frame().number32(-1), Wire::bytes));
        assertEquals(
                "length of a list must be from 0 to 1: 2",
                unreadable(new Wire.Frame().number32(2).raw(new byte[7]), Wire::numbers));
        assertEquals(
                "length of a list must be from 0 to 0: -1", unreadable(new Wire.Frame().number32(-1), Wire::numbers));
        assertEquals("a frame is too short", unreadable(new Wire.Frame().number8(1), Wire::bytes));
        assertEquals(List.of(), Wire.read(frame(new Wire.Frame().number32(0)), Wire::numbers));
    }

    /* Responses. */

    private static byte[] content(Wire.Frame response) {
        return ResponseReader.content(frame(response), 3);
    }

    @Test
    void readsContentOrFailureOfResponse() {
        assertArrayEquals(
                new byte[] {1, 2}, content(new Wire.Frame().number8(Wire.OK).raw(new byte[] {1, 2})));
        assertEquals(
                "gone",
                assertThrows(
                                RendezvousException.class,
                                () -> content(
                                        new Wire.Frame().number8(Wire.FAILED).text("gone")))
                        .getMessage());
        RendezvousTimeoutException late = assertThrows(
                RendezvousTimeoutException.class,
                () -> content(
                        new Wire.Frame().number8(Wire.TIMED_OUT).text("late").numbers(List.of(1, 2))));
        assertEquals(List.of(1, 2), late.missing());
        assertEquals(
                "the store sent rank 3 an invalid response",
                assertThrows(RendezvousException.class, () -> content(new Wire.Frame()))
                        .getMessage());
    }

    @Test
    void readsOneValuePerRank() {
        byte[] two = new Wire.Frame().text("a").text("b").toBytes();
        List<byte[]> values = ResponseReader.values(two, 2);
        assertEquals(2, values.size());
        assertArrayEquals(new byte[] {'b'}, values.get(1));
        assertEquals(
                "the response of the store must have 3 values: it has 2",
                assertThrows(RendezvousException.class, () -> ResponseReader.values(two, 3))
                        .getMessage());
    }

    /* Broadcast messages. */

    @Test
    void broadcastSendsValueOfRoot() {
        List<byte[]> sent = new ArrayList<>();
        byte[] value = {7, 8};
        assertSame(value, BroadcastMessage.send(() -> value, sent::add));
        assertArrayEquals(value, BroadcastMessage.decode(sent.get(0), 2));
        BroadcastMessage.requireRoot(0, 2);
        BroadcastMessage.requireRoot(1, 2);
        assertEquals("root must be >= 0 and < size: 2, size 2", refused(() -> BroadcastMessage.requireRoot(2, 2)));
        assertEquals("root must be >= 0 and < size: -1, size 2", refused(() -> BroadcastMessage.requireRoot(-1, 2)));
        assertEquals(
                "all ranks must name the same root: rank 2 does not name itself",
                assertThrows(RendezvousException.class, () -> BroadcastMessage.decode(new byte[0], 2))
                        .getMessage());
    }

    @Test
    void broadcastSendsFailureOfRoot() {
        List<byte[]> sent = new ArrayList<>();
        IllegalStateException failure = new IllegalStateException("é".repeat(BroadcastMessage.MAX_REASON_CHARS + 1));
        assertSame(
                failure,
                assertThrows(
                        IllegalStateException.class,
                        () -> BroadcastMessage.send(
                                () -> {
                                    throw failure;
                                },
                                sent::add)));
        assertEquals(
                "rank 2 failed: " + "é".repeat(BroadcastMessage.MAX_REASON_CHARS),
                assertThrows(RendezvousException.class, () -> BroadcastMessage.decode(sent.get(0), 2))
                        .getMessage());
        byte[] tooLong = new byte[Rendezvous.LONGEST_VALUE];
        assertEquals(
                "a value must have < " + tooLong.length + " bytes: " + tooLong.length,
                refused(() -> BroadcastMessage.send(() -> tooLong, sent::add)));
        assertEquals(2, sent.size());
        byte[] longest = new byte[tooLong.length - 1];
        BroadcastMessage.send(() -> longest, sent::add);
        assertArrayEquals(longest, BroadcastMessage.decode(sent.get(2), 2));
        // A failure to send the reason does not hide the reason.
        IllegalStateException unsent = new IllegalStateException("unsent");
        assertThrows(
                IllegalStateException.class,
                () -> BroadcastMessage.send(
                        () -> {
                            throw failure;
                        },
                        message -> {
                            throw unsent;
                        }));
        assertArrayEquals(new Throwable[] {unsent}, failure.getSuppressed());
    }

    @Test
    void countersAreDecimalNumbers() {
        assertEquals("-12", new String(Counter.encode(-12), StandardCharsets.US_ASCII));
        assertEquals(Long.MIN_VALUE, Counter.decode(Counter.encode(Long.MIN_VALUE)));
        assertEquals("the value of a counter must be a decimal number: ''", counterFailure(""));
        assertEquals("the value of a counter must be a decimal number: 'x'", counterFailure("x"));
        assertEquals("the value of a counter must have <= 20 bytes: it has 21", counterFailure("0".repeat(21)));
    }

    private static String counterFailure(String value) {
        byte[] bytes = value.getBytes(StandardCharsets.US_ASCII);
        return assertThrows(IllegalStateException.class, () -> Counter.decode(bytes))
                .getMessage();
    }
}
