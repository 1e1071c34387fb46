package io.github.nccl4j.launch;

import java.io.EOFException;
import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * One end of a connection that carries frames: their length in four bytes, then so many bytes, sealed once there is a
 * {@link Seal}. Belongs to its loop's thread.
 */
abstract class Connection implements EventLoop.Handler {
    /** What the other end does not take from us, we do not keep for ever. */
    private static final long MOST_QUEUED = 4 << 20;

    private static final int MOST_AT_ONCE = 64;

    private final EventLoop loop;
    private final SocketChannel channel;
    private SelectionKey key;

    private final ByteBuffer length = ByteBuffer.allocate(Integer.BYTES);
    private byte[] body;
    private int filled;
    private int limit;

    private final Deque<ByteBuffer> queue = new ArrayDeque<>();
    private long queued;

    private Seal seal;
    private boolean closed;

    Connection(EventLoop loop, SocketChannel channel, int limit) {
        this.loop = loop;
        this.channel = channel;
        this.limit = limit;
    }

    /** Begins to read and write, or to connect. */
    final void start(int operations) throws IOException {
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        Keepalive.enable(channel);
        key = loop.register(channel, operations, this);
    }

    final EventLoop loop() {
        return loop;
    }

    final SocketChannel channel() {
        return channel;
    }

    final boolean isClosed() {
        return closed;
    }

    /** From now on frames are sealed, and may be longer. */
    final void isTrusted(Seal seal, int limit) {
        this.seal = seal;
        this.limit = limit;
    }

    /** From now on frames may be longer. */
    final void isStillTrusted(int limit) {
        this.limit = limit;
    }

    /** A frame has come. Throws what ends the connection. */
    abstract void received(ByteBuffer frame) throws IOException;

    /** The connection has ended, by the other end, an error, or {@link #close}. Called once. */
    abstract void ended(IOException why);

    /** The attempt to connect has succeeded. */
    void connected() throws IOException {
        throw new IOException("not expected");
    }

    final void close(IOException why) {
        if (!closed) {
            EventLoop.close(key, why);
        }
    }

    @Override
    public final void closed(IOException why) {
        if (!closed) {
            closed = true;
            queue.clear();
            ended(why);
        }
    }

    @Override
    public final void ready(SelectionKey ready) throws IOException {
        if (ready.isConnectable()) {
            channel.finishConnect();
            ready.interestOps(SelectionKey.OP_READ);
            connected();
            return;
        }
        if (ready.isWritable()) {
            flush();
        }
        if (ready.isReadable()) {
            read();
        }
    }

    private void read() throws IOException {
        ByteBuffer input = loop.input();
        int count = channel.read(input);
        if (count < 0) {
            throw new EOFException("closed by the other end");
        }
        input.flip();
        while (input.hasRemaining() && !closed) {
            if (body == null) {
                while (length.hasRemaining() && input.hasRemaining()) {
                    length.put(input.get());
                }
                if (length.hasRemaining()) {
                    return;
                }
                int announced = length.getInt(0);
                if (announced < 0 || announced > limit) {
                    throw new IOException(
                            "a frame of " + Integer.toUnsignedString(announced) + " bytes, more than " + limit);
                }
                body = new byte[announced];
                filled = 0;
            }
            int part = Math.min(input.remaining(), body.length - filled);
            input.get(body, filled, part);
            filled += part;
            if (filled == body.length) {
                byte[] frame = body;
                body = null;
                length.clear();
                received(ByteBuffer.wrap(seal == null ? frame : seal.open(frame)));
            }
        }
    }

    /** Sends a frame, now or when the other end takes it. */
    final void send(byte[] plain) {
        if (closed) {
            return;
        }
        try {
            byte[] content = seal == null ? plain : seal.seal(plain);
            ByteBuffer frame = ByteBuffer.allocate(Integer.BYTES + content.length);
            frame.putInt(content.length).put(content).flip();
            if (!queue.isEmpty() && queued + frame.remaining() > MOST_QUEUED) {
                throw new IOException("the other end does not read what it asked for");
            }
            queue.add(frame);
            queued += frame.remaining();
            flush();
        } catch (IOException failure) {
            close(failure);
        }
    }

    private void flush() throws IOException {
        while (!queue.isEmpty()) {
            ByteBuffer[] some = queue.stream().limit(MOST_AT_ONCE).toArray(ByteBuffer[]::new);
            queued -= channel.write(some);
            while (!queue.isEmpty() && !queue.peek().hasRemaining()) {
                queue.remove();
            }
            if (some[some.length - 1].hasRemaining()) {
                break;
            }
        }
        int operations = SelectionKey.OP_READ | (queue.isEmpty() ? 0 : SelectionKey.OP_WRITE);
        if (key.interestOps() != operations) {
            key.interestOps(operations);
        }
    }

    final boolean hasSentAll() {
        return queue.isEmpty();
    }
}
