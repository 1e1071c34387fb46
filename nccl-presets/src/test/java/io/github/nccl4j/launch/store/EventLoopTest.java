package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.testing.Waiting;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of {@link EventLoop} and of {@link Connection} on sockets of this process. */
@Timeout(60)
class EventLoopTest {
    private static final long LIMIT_SECONDS = 30;
    private static final int MAX_FRAME = 1000;

    private final EventLoop loop;
    private final List<SocketChannel> channels = new ArrayList<>();

    EventLoopTest() throws IOException {
        loop = new EventLoop("test-loop");
    }

    @AfterEach
    void end() throws Exception {
        loop.close();
        loop.awaitEnd(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
        for (SocketChannel channel : channels) {
            channel.close();
        }
    }

    private static <T> T get(CompletableFuture<T> result) throws Exception {
        return result.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    /** Returns when the loop has run all earlier tasks. */
    private void settle() throws Exception {
        CompletableFuture<Void> done = new CompletableFuture<>();
        loop.execute(() -> done.complete(null));
        get(done);
    }

    /* Tasks and timers. */

    @Test
    void tasksRunInOrderInOneThread() throws Exception {
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        CompletableFuture<Thread> last = new CompletableFuture<>();
        CompletableFuture<Thread> first = new CompletableFuture<>();
        for (int i = 0; i < 100; i++) {
            int number = i;
            loop.execute(() -> order.add(number));
        }
        loop.execute(() -> {
            first.complete(Thread.currentThread());
            // From the loop itself: nothing needs to wake it.
            loop.execute(() -> last.complete(Thread.currentThread()));
        });
        assertSame(get(first), get(last));
        assertEquals("test-loop", get(last).getName());
        assertTrue(get(last).isDaemon());
        assertEquals(100, order.size());
        for (int i = 0; i < 100; i++) {
            assertEquals(i, order.get(i));
        }
    }

    @Test
    void timerRunsNotBeforeItsTime() throws Exception {
        CompletableFuture<Long> ran = new CompletableFuture<>();
        long due = System.nanoTime() + 20_000_000;
        loop.execute(() -> loop.timers().schedule(due, () -> ran.complete(System.nanoTime())));
        assertTrue(get(ran) - due >= 0);
    }

    /** The loop has run its tasks by then, and must not wait for a channel. Repeated, since the first task may wake it twice. */
    @Test
    void taskOfATimerRunsAtOnce() throws Exception {
        CompletableFuture<Boolean> ran = new CompletableFuture<>();
        loop.execute(() -> repeat(3, ran));
        assertTrue(get(ran));
    }

    private void repeat(int left, CompletableFuture<Boolean> ran) {
        if (left == 0) {
            ran.complete(true);
        } else {
            loop.timers().schedule(System.nanoTime(), () -> loop.execute(() -> repeat(left - 1, ran)));
        }
    }

    @Test
    void clockIsThatOfTheTimers() throws Exception {
        EventLoop other = new EventLoop("test-clock", () -> 42);
        assertEquals(42, other.now());
        other.close();
        other.awaitEnd(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
    }

    @Test
    void failureOfATaskIsLoggedOnly() throws Exception {
        try (TestLog log = new TestLog()) {
            loop.execute(() -> {
                throw new IllegalStateException("a failure of a test");
            });
            loop.execute(() -> loop.timers().schedule(System.nanoTime(), () -> {
                throw new IllegalStateException("a failure of a test");
            }));
            TestStore.settle(loop);
            String line = "SEVERE: a task of the store failed";
            assertEquals(List.of(line, line), log.lines());
            assertEquals("a failure of a test", log.records().get(1).getThrown().getMessage());
        }
    }

    /** Tasks and timers, of which one runs again: without memory, one that repeats would else end. */
    @Test
    void errorsDoNotEndTheThread() throws Exception {
        CompletableFuture<Boolean> again = new CompletableFuture<>();
        List<Error> failures = new ArrayList<>(List.of(new OutOfMemoryError("a failure of a test")));
        try (TestLog log = new TestLog()) {
            loop.execute(() -> {
                throw new StackOverflowError("a failure of a test");
            });
            loop.execute(() -> {
                loop.timers().schedule(System.nanoTime(), () -> {
                    throw new AssertionError("a failure of a test");
                });
                loop.timers().schedule(System.nanoTime(), () -> {
                    if (!failures.isEmpty()) {
                        throw failures.remove(0);
                    }
                    again.complete(true);
                });
            });
            assertTrue(get(again));
            String line = "SEVERE: a task of the store failed";
            assertEquals(List.of(line, line, "SEVERE: test-loop continues after a failure"), log.lines());
        }
    }

    /** A task that comes when the loop has been told to end runs nevertheless, as the last one. */
    @Test
    void tasksBeforeTheEndAreRun() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        CompletableFuture<Boolean> late = new CompletableFuture<>();
        loop.execute(() -> {
            begun.countDown();
            try {
                closed.await();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        });
        begun.await();
        loop.close();
        loop.execute(() -> late.complete(true));
        closed.countDown();
        assertTrue(get(late));
        loop.awaitEnd(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
        try (SocketChannel channel = SocketChannel.open()) {
            assertThrows(ClosedSelectorException.class, () -> loop.register(channel, SelectionKey.OP_READ, null));
        }
    }

    @Test
    void usersShareALoopWhileOneNeedsIt() throws Exception {
        EventLoop.Shared shared = new EventLoop.Shared("test-shared");
        EventLoop first = shared.acquire();
        assertSame(first, shared.acquire());
        shared.release();
        assertSame(first, shared.acquire());
        shared.release();
        CompletableFuture<Thread> runs = new CompletableFuture<>();
        first.execute(() -> runs.complete(Thread.currentThread()));
        assertTrue(get(runs).isAlive());
        shared.release();
        first.awaitEnd(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
        assertFalse(get(runs).isAlive());
        EventLoop next = shared.acquire();
        assertNotSame(first, next);
        shared.release();
        next.awaitEnd(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
    }

    @Test
    void clientsShareALoop() throws Exception {
        int users = EventLoop.OF_CLIENTS.users();
        EventLoop first = EventLoop.acquireForClient();
        assertNotNull(first);
        assertSame(first, EventLoop.acquireForClient());
        assertEquals(users + 2, EventLoop.OF_CLIENTS.users());
        EventLoop.releaseByClient();
        EventLoop.releaseByClient();
        assertEquals(users, EventLoop.OF_CLIENTS.users());
    }

    /* Connections. */

    /** Records its frames; the content "fail" closes it. */
    private static class Recorder extends Connection {
        private final List<String> frames = Collections.synchronizedList(new ArrayList<>());
        private final CompletableFuture<IOException> end = new CompletableFuture<>();
        private volatile Runnable atEnd = () -> {};

        Recorder(EventLoop loop, SocketChannel channel) {
            super(loop, channel, MAX_FRAME);
        }

        @Override
        void handleFrame(ByteBuffer frame) throws IOException {
            String text = new String(frame.array(), StandardCharsets.UTF_8);
            frames.add(text);
            if (text.equals("fail")) {
                throw new IOException("failed");
            }
            if (text.equals("error")) {
                throw new OutOfMemoryError("error");
            }
            if (text.equals("bug")) {
                throw new IllegalStateException("bug");
            }
            if (text.equals("close")) {
                close(new IOException("closed"));
            }
        }

        @Override
        void handleEnd(IOException why) {
            atEnd.run();
            assertTrue(end.complete(why), "ended twice");
        }
    }

    private SocketChannel peer;

    /** Connects two channels: {@link #peer}, which blocks, and that of the connection. */
    private Recorder connect() throws Exception {
        try (ServerSocketChannel listener =
                ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))) {
            peer = SocketChannel.open(listener.getLocalAddress());
            SocketChannel channel = listener.accept();
            channels.add(peer);
            channels.add(channel);
            Recorder connection = new Recorder(loop, channel);
            CompletableFuture<Void> started = new CompletableFuture<>();
            loop.execute(() -> {
                try {
                    connection.start(SelectionKey.OP_READ);
                    started.complete(null);
                } catch (IOException failure) {
                    started.completeExceptionally(failure);
                }
            });
            get(started);
            return connection;
        }
    }

    private static ByteBuffer frame(String text) {
        return ByteBuffer.allocate(Integer.BYTES + text.length())
                .putInt(text.length())
                .put(text.getBytes(StandardCharsets.UTF_8))
                .flip();
    }

    private void write(ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            peer.write(bytes);
        }
    }

    private static void awaitFrames(Recorder connection, List<String> expected) throws InterruptedException {
        Waiting.value("frames " + expected, () -> connection.frames.size(), size -> size >= expected.size());
        assertEquals(expected, List.copyOf(connection.frames));
    }

    @Test
    void framesMayArriveInPartsAndTogether() throws Exception {
        Recorder connection = connect();
        byte[] both = new byte[2 * Integer.BYTES + 5 + MAX_FRAME];
        String longest = "x".repeat(MAX_FRAME);
        ByteBuffer.wrap(both).put(frame("hello")).put(frame(longest));
        for (int i = 0; i < 20; i++) {
            write(ByteBuffer.wrap(both, i, 1));
            settle();
        }
        // The rest of a frame, and more frames.
        ByteBuffer rest = ByteBuffer.allocate(2 * MAX_FRAME);
        rest.put(both, 20, both.length - 20).put(frame("a")).put(frame("")).put(frame("b"));
        write(rest.flip());
        awaitFrames(connection, List.of("hello", longest, "a", "", "b"));
        assertFalse(connection.isClosed());
    }

    @Test
    void tooLongFrameEndsConnection() throws Exception {
        Recorder connection = connect();
        write(ByteBuffer.allocate(Integer.BYTES).putInt(MAX_FRAME + 1).flip());
        assertEquals(
                "a frame must have <= 1000 bytes: 1001", get(connection.end).getMessage());
        assertTrue(connection.isClosed());
        assertEquals(-1, peer.read(ByteBuffer.allocate(1)));
        connection = connect();
        write(ByteBuffer.allocate(Integer.BYTES).putInt(-1).flip());
        assertEquals(
                "a frame must have <= 1000 bytes: 4294967295",
                get(connection.end).getMessage());
    }

    @Test
    void limitOfFramesCanChange() throws Exception {
        Recorder connection = connect();
        loop.execute(() -> connection.setMaxFrameBytes(2));
        settle();
        write(frame("ab"));
        awaitFrames(connection, List.of("ab"));
        write(frame("abc"));
        assertEquals("a frame must have <= 2 bytes: 3", get(connection.end).getMessage());
    }

    @Test
    void endOfThePeerEndsConnection() throws Exception {
        Recorder connection = connect();
        peer.close();
        assertEquals("the peer has closed the connection", get(connection.end).getMessage());
    }

    @Test
    void failureOfAHandlerEndsConnection() throws Exception {
        Recorder connection = connect();
        write(frame("fail"));
        assertEquals("failed", get(connection.end).getMessage());
        connection = connect();
        write(frame("bug"));
        assertEquals("java.lang.IllegalStateException: bug", get(connection.end).getMessage());
    }

    @Test
    void errorOfAHandlerEndsOneConnection() throws Exception {
        Recorder other = connect();
        SocketChannel ofOther = peer;
        Recorder connection = connect();
        write(frame("error"));
        assertEquals("java.lang.OutOfMemoryError: error", get(connection.end).getMessage());
        peer = ofOther;
        write(frame("hello"));
        awaitFrames(other, List.of("hello"));
        assertFalse(other.isClosed());
    }

    /** The frames behind the one that has closed the connection are not handled. */
    @Test
    void nothingIsHandledAfterTheEnd() throws Exception {
        Recorder connection = connect();
        ByteBuffer both = ByteBuffer.allocate(100);
        write(both.put(frame("close")).put(frame("more")).flip());
        assertEquals("closed", get(connection.end).getMessage());
        settle();
        assertEquals(List.of("close"), connection.frames);
        loop.execute(() -> {
            connection.close(new IOException("again"));
            connection.send(new byte[1]);
        });
        settle();
        assertTrue(connection.hasSentAll());
    }

    @Test
    void endOfTheLoopEndsConnections() throws Exception {
        Recorder connection = connect();
        CompletableFuture<Boolean> late = new CompletableFuture<>();
        connection.atEnd = () -> loop.execute(() -> late.complete(true));
        loop.close();
        assertEquals("the store's thread has ended", get(connection.end).getMessage());
        // A caller may wait for a task that the end itself has caused.
        assertTrue(get(late));
    }

    /** It reads from then on. */
    @Test
    void connectionThatConnectsIsTold() throws Exception {
        try (ServerSocketChannel listener =
                ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))) {
            SocketChannel channel = SocketChannel.open();
            channels.add(channel);
            channel.configureBlocking(false);
            boolean done = channel.connect(listener.getLocalAddress());
            CompletableFuture<Boolean> connected = new CompletableFuture<>();
            Recorder connection = new Recorder(loop, channel) {
                @Override
                void handleConnect() {
                    connected.complete(true);
                }
            };
            loop.execute(() -> {
                try {
                    connection.start(done ? SelectionKey.OP_READ : SelectionKey.OP_CONNECT);
                } catch (IOException failure) {
                    connected.completeExceptionally(failure);
                }
            });
            assertTrue(done || get(connected));
            peer = listener.accept();
            channels.add(peer);
            write(frame("hello"));
            awaitFrames(connection, List.of("hello"));
        }
    }

    @Test
    void acceptedConnectionDoesNotConnect() throws Exception {
        Recorder connection = connect();
        assertSame(loop, connection.loop());
        assertSame(channels.get(1), connection.channel());
        assertTrue(connection.channel().getOption(StandardSocketOptions.TCP_NODELAY));
        assertEquals(
                "this connection must not connect: it was accepted",
                assertThrows(IOException.class, connection::handleConnect).getMessage());
    }

    /** Probes detect within half a minute that the host of the peer is gone. The names are those of the module jdk.net. */
    @Test
    void connectionIsProbed() throws Exception {
        SocketChannel channel = connect().channel();
        assertTrue(channel.getOption(StandardSocketOptions.SO_KEEPALIVE));
        Map<String, Object> probes = new TreeMap<>();
        for (SocketOption<?> option : channel.supportedOptions()) {
            if (option.name().startsWith("TCP_KEEP")) {
                probes.put(option.name(), channel.getOption(option));
            }
        }
        assertTrue(
                probes.isEmpty()
                        || probes.equals(Map.of("TCP_KEEPIDLE", 10, "TCP_KEEPINTERVAL", 5, "TCP_KEEPCOUNT", 4)),
                probes::toString);
    }

    private byte[] read(int length) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(length);
        while (bytes.hasRemaining()) {
            assertTrue(peer.read(bytes) >= 0);
        }
        return bytes.array();
    }

    @Test
    void sentFramesArriveInOrder() throws Exception {
        Recorder connection = connect();
        loop.execute(() -> {
            for (int i = 0; i < 200; i++) {
                connection.send(new byte[] {(byte) i});
            }
        });
        ByteBuffer all = ByteBuffer.wrap(read(200 * (Integer.BYTES + 1)));
        for (int i = 0; i < 200; i++) {
            assertEquals(1, all.getInt());
            assertEquals((byte) i, all.get());
        }
        settle();
        assertTrue(connection.hasSentAll());
    }

    /** More than the kernel buffers: the rest follows when the peer reads. */
    @Test
    void sendsTheRestWhenThePeerReads() throws Exception {
        Recorder connection = connect();
        byte[] whole = new byte[64 << 20];
        whole[whole.length - 1] = 5;
        CompletableFuture<Boolean> pending = new CompletableFuture<>();
        loop.execute(() -> {
            // A single frame may be longer than the limit of the queue.
            connection.send(whole);
            pending.complete(!connection.hasSentAll());
        });
        assertTrue(get(pending));
        assertEquals(whole.length, ByteBuffer.wrap(read(Integer.BYTES)).getInt());
        assertEquals(5, read(whole.length)[whole.length - 1]);
        settle();
        assertTrue(connection.hasSentAll());
        loop.execute(() -> connection.send(new byte[] {7}));
        assertEquals(7, read(Integer.BYTES + 1)[Integer.BYTES]);
        // Still readable.
        write(frame("a"));
        awaitFrames(connection, List.of("a"));
    }

    @Test
    void peerThatDoesNotReadIsGivenUp() throws Exception {
        Recorder connection = connect();
        byte[] part = new byte[1 << 20];
        loop.execute(() -> {
            for (int i = 0; i < 100 && !connection.isClosed(); i++) {
                connection.send(part);
            }
        });
        String why = get(connection.end).getMessage();
        assertTrue(why.startsWith("output that the peer does not read must have <= 4194304 bytes: "), why);
        long queued = Long.parseLong(why.replaceFirst(".*: ", ""));
        assertTrue(queued > 4 << 20 && queued <= (5 << 20) + Integer.BYTES, why);
        settle();
        // What is left is given up.
        assertTrue(connection.hasSentAll());
    }
}
