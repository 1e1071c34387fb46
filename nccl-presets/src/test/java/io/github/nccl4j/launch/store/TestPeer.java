package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.launch.wire.Wire;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;

/** One end of a connection between a rank and a store, which sends and reads single frames. It waits for a frame for some time only. */
class TestPeer implements AutoCloseable {
    private static final int LIMIT_MILLIS = 20_000;

    private final Socket socket;
    private final DataInputStream in;
    private final DataOutputStream out;
    private Seal seal;

    TestPeer(Socket socket) throws IOException {
        this.socket = socket;
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(LIMIT_MILLIS);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
    }

    final void seal(Seal all) {
        seal = all;
    }

    final void send(Wire.Frame frame) throws IOException {
        byte[] plain = frame.toBytes();
        byte[] content = seal == null ? plain : seal.seal(plain);
        sendRaw(ByteBuffer.allocate(Integer.BYTES + content.length)
                .putInt(content.length)
                .put(content)
                .array());
    }

    final void sendRaw(byte[] bytes) throws IOException {
        out.write(bytes);
    }

    /** The next frame of the other end. */
    final ByteBuffer receive() throws IOException {
        byte[] frame = in.readNBytes(in.readInt());
        return ByteBuffer.wrap(seal == null ? frame : seal.open(frame));
    }

    /** Returns when the other end has closed the connection, after all its frames were read. */
    final void requireEnd() {
        int first;
        try {
            first = in.read();
        } catch (SocketTimeoutException open) {
            throw new AssertionError("the connection is open", open);
        } catch (IOException reset) {
            return;
        }
        assertEquals(-1, first, "there is one more frame");
    }

    @Override
    public final void close() throws IOException {
        socket.close();
    }
}
