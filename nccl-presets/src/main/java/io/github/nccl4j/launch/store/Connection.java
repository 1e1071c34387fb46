package io.github.nccl4j.launch.store;

import java.io.EOFException;
import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * One end of a connection that carries frames. A frame is its length in four bytes, then that many bytes, which are sealed
 * after {@link #enableSeal}. Confined to the thread of the loop.
 */
abstract class Connection implements EventLoop.Handler {
    /** Limit for output that a peer does not read, in bytes. */
    private static final long MAX_QUEUED_BYTES = 4 << 20;

    private static final int MAX_FRAMES_PER_WRITE = 64;

    private final EventLoop loop;
    private final SocketChannel channel;
    private SelectionKey key;

    private final ByteBuffer length = ByteBuffer.allocate(Integer.BYTES);
    private byte[] body;
    private int filled;
    private int maxFrameBytes;

    private final Deque<ByteBuffer> queue = new ArrayDeque<>();
    private long queuedBytes;

    private Seal seal;
    private boolean closed;

    Connection(EventLoop loop, SocketChannel channel, int maxFrameBytes) {
        this.loop = loop;
        this.channel = channel;
        this.maxFrameBytes = maxFrameBytes;
    }

    /** Registers the channel for operations of {@link SelectionKey}. */
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

    /** Seals all further frames, unless the seal is null, and sets their limit. */
    final void enableSeal(Seal seal, int maxFrameBytes) {
        this.seal = seal;
        this.maxFrameBytes = maxFrameBytes;
    }

    /** Sets the limit of further frames. */
    final void setMaxFrameBytes(int maxFrameBytes) {
        this.maxFrameBytes = maxFrameBytes;
    }

    /** Handles a frame, which is plain. An exception closes the connection. */
    abstract void handleFrame(ByteBuffer frame) throws IOException;

    /** Called once when the connection has ended: by the peer, by an error, or by {@link #close}. */
    abstract void handleEnd(IOException why);

    /** Called when the channel has connected. */
    void handleConnect() throws IOException {
        throw new IOException("this connection must not connect: it was accepted");
    }

    final void close(IOException why) {
        if (!closed) {
            EventLoop.close(key, why);
        }
    }

    @Override
    public final void handleClose(IOException why) {
        if (!closed) {
            closed = true;
            queue.clear();
            handleEnd(why);
        }
    }

    @Override
    public final void handleReady(SelectionKey ready) throws IOException {
        if (ready.isConnectable()) {
            channel.finishConnect();
            ready.interestOps(SelectionKey.OP_READ);
            handleConnect();
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
            throw new EOFException("the peer has closed the connection");
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
                if (announced < 0 || announced > maxFrameBytes) {
                    throw new IOException(
                            "a frame must have <= " + maxFrameBytes + " bytes: " + Integer.toUnsignedString(announced));
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
                handleFrame(ByteBuffer.wrap(seal == null ? frame : seal.open(frame)));
            }
        }
    }

    /** Sends a frame, or queues it until the channel is writable. Does nothing if the connection has ended. */
    final void send(byte[] plain) {
        if (closed) {
            return;
        }
        try {
            byte[] content = seal == null ? plain : seal.seal(plain);
            ByteBuffer frame = ByteBuffer.allocate(Integer.BYTES + content.length);
            frame.putInt(content.length).put(content).flip();
            if (!queue.isEmpty() && queuedBytes + frame.remaining() > MAX_QUEUED_BYTES) {
                throw new IOException("output that the peer does not read must have <= " + MAX_QUEUED_BYTES + " bytes: "
                        + (queuedBytes + frame.remaining()));
            }
            queue.add(frame);
            queuedBytes += frame.remaining();
            flush();
        } catch (IOException failure) {
            close(failure);
        } catch (RuntimeException | Error failure) {
            // The peer would miss a frame.
            close(new IOException(failure));
        }
    }

    private void flush() throws IOException {
        while (!queue.isEmpty()) {
            ByteBuffer[] some = queue.stream().limit(MAX_FRAMES_PER_WRITE).toArray(ByteBuffer[]::new);
            queuedBytes -= channel.write(some);
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
