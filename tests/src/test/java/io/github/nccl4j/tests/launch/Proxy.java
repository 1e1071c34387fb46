package io.github.nccl4j.tests.launch;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Someone between a rank and the store, who keeps what passes, and may change a byte of it. */
final class Proxy implements AutoCloseable {
    private final ServerSocket listener;
    private final int target;
    private final ByteArrayOutputStream toStore = new ByteArrayOutputStream();
    private final ByteArrayOutputStream toRank = new ByteArrayOutputStream();
    private volatile boolean changes;

    Proxy(int target) throws IOException {
        this.target = target;
        listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        daemon(this::accept);
    }

    int port() {
        return listener.getLocalPort();
    }

    byte[] toStore() {
        synchronized (toStore) {
            return toStore.toByteArray();
        }
    }

    byte[] toRank() {
        synchronized (toRank) {
            return toRank.toByteArray();
        }
    }

    /** From now on the last byte of what goes to the store is another one. */
    void changeWhatPasses() {
        changes = true;
    }

    private void accept() {
        try {
            while (true) {
                Socket rank = listener.accept();
                Socket store;
                try {
                    store = new Socket("127.0.0.1", target);
                } catch (IOException notYet) {
                    rank.close();
                    continue;
                }
                daemon(() -> copy(rank, store, toStore, true));
                daemon(() -> copy(store, rank, toRank, false));
            }
        } catch (IOException closed) {
            // The test is over, or the store.
        }
    }

    private void copy(Socket from, Socket to, ByteArrayOutputStream kept, boolean mayChange) {
        try (from;
                to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] buffer = new byte[1 << 16];
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                synchronized (kept) {
                    kept.write(buffer, 0, count);
                }
                if (mayChange && changes) {
                    buffer[count - 1] ^= 1;
                }
                out.write(buffer, 0, count);
            }
        } catch (IOException closed) {
            // The other copy ends, too.
        }
    }

    private static void daemon(Runnable body) {
        Thread thread = new Thread(body, "proxy");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }
}
