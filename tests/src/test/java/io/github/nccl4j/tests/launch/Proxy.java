package io.github.nccl4j.tests.launch;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;

/** TCP proxy between a rank and the store. It records the traffic, and it can corrupt, hold up and cut the connection. */
public final class Proxy implements AutoCloseable {
    private final ServerSocket listener;
    private final int target;
    private final ByteArrayOutputStream toStore = new ByteArrayOutputStream();
    private final ByteArrayOutputStream toRank = new ByteArrayOutputStream();
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private volatile boolean corrupting;
    private volatile CountDownLatch held = new CountDownLatch(0);

    public Proxy(int target) throws IOException {
        this.target = target;
        listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        startDaemon(this::accept);
    }

    public int port() {
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

    /** From now on changes the last byte of each chunk that goes to the store. */
    void corrupt() {
        corrupting = true;
    }

    /** From now on nothing goes through, in both directions, as if the link was cut. */
    public void hold() {
        held = new CountDownLatch(1);
    }

    /** Lets go through what was held up. */
    public void release() {
        held.countDown();
    }

    /** Ends the connections without a word, as the end of a process does. */
    public void cut() throws IOException {
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    private void accept() {
        try {
            while (true) {
                Socket rank = listener.accept();
                Socket store;
                try {
                    store = new Socket("127.0.0.1", target);
                } catch (IOException refused) {
                    rank.close();
                    continue;
                }
                sockets.addAll(List.of(rank, store));
                startDaemon(() -> copy(rank, store, toStore, true));
                startDaemon(() -> copy(store, rank, toRank, false));
            }
        } catch (IOException closed) {
            // The test has closed the listener.
        }
    }

    private void copy(Socket from, Socket to, ByteArrayOutputStream record, boolean mayCorrupt) {
        try (from;
                to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] buffer = new byte[1 << 16];
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                synchronized (record) {
                    record.write(buffer, 0, count);
                }
                if (mayCorrupt && corrupting) {
                    buffer[count - 1] ^= 1;
                }
                held.await();
                out.write(buffer, 0, count);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException closed) {
            // Closing both sockets ends the copy in the other direction, too.
        }
    }

    private static void startDaemon(Runnable body) {
        Thread thread = new Thread(body, "proxy");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() throws IOException {
        held.countDown();
        listener.close();
    }
}
