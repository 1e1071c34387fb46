package io.github.nccl4j.samples.support;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Rank 0's side of {@link IdExchange}: waits for all others, then gives all of them the id or the reason why not. */
final class IdServer implements AutoCloseable {

    /** A connection that does not say who it is within this time is not one of ours. */
    private static final int HELLO_MILLIS = 5000;

    private static final int STRANGERS = 16;

    private final RankInfo self;
    private final Duration timeout;
    private final ServerSocket listener;
    private final BlockingQueue<Guest> arrivals = new LinkedBlockingQueue<>();
    private final List<Guest> guests = new ArrayList<>();

    /** A connected rank that waits for its answer. */
    private record Guest(int rank, int worldSize, Socket socket) {}

    IdServer(RankInfo self, Duration timeout) {
        this.self = self;
        this.timeout = timeout;
        this.listener = listen(self);
    }

    private static ServerSocket listen(RankInfo self) {
        String place = self.masterAddress() + ":" + self.masterPort();
        try {
            ServerSocket socket = new ServerSocket();
            socket.setReuseAddress(true);
            InetAddress address = InetAddress.getByName(self.masterAddress());
            // The address may be that of a service in front of this host; only then listen on all interfaces.
            boolean ours = address.isAnyLocalAddress() || NetworkInterface.getByInetAddress(address) != null;
            socket.bind(
                    ours ? new InetSocketAddress(address, self.masterPort()) : new InetSocketAddress(self.masterPort()),
                    self.worldSize() + STRANGERS);
            return socket;
        } catch (BindException taken) {
            throw new RendezvousException(
                    "rank 0 can't listen at " + place + " (MASTER_ADDR, MASTER_PORT): " + taken.getMessage(), taken);
        } catch (IOException other) {
            throw new RendezvousException("rank 0 can't listen at " + place + ": " + other, other);
        }
    }

    byte[] serve(byte[] id, long deadline) {
        daemon("id-accept", this::accept);
        try {
            awaitAll(deadline);
        } catch (RendezvousException failure) {
            answerAll(IdExchange.FAILED, failure.getMessage().getBytes(StandardCharsets.UTF_8));
            throw failure;
        }
        answerAll(IdExchange.OK, id);
        return id;
    }

    private void accept() {
        try {
            while (true) {
                Socket socket = listener.accept();
                daemon("id-hello", () -> greet(socket));
            }
        } catch (IOException closed) {
            // The exchange is over.
        }
    }

    private void greet(Socket socket) {
        try {
            socket.setSoTimeout(HELLO_MILLIS);
            socket.setTcpNoDelay(true);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            if (in.readLong() == IdExchange.MAGIC) {
                arrivals.add(new Guest(in.readInt(), in.readInt(), socket));
                return;
            }
        } catch (IOException stranger) {
            // Closed below, like one with other first bytes.
        }
        close(socket);
    }

    private void awaitAll(long deadline) {
        Set<Integer> missing = IntStream.range(1, self.worldSize()).boxed().collect(Collectors.toSet());
        Set<Integer> seen = new HashSet<>(Set.of(0));
        while (!missing.isEmpty()) {
            Guest guest = next(deadline);
            if (guest == null) {
                throw new RendezvousException(missing(missing));
            }
            guests.add(guest);
            if (guest.worldSize() != self.worldSize()) {
                throw new RendezvousException("rank " + guest.rank() + " expects " + guest.worldSize()
                        + " ranks, rank 0 expects " + self.worldSize());
            }
            if (!seen.add(guest.rank())) {
                throw new RendezvousException("two processes say that they are rank " + guest.rank() + " of "
                        + self.worldSize() + "; the second came from "
                        + guest.socket().getInetAddress().getHostAddress());
            }
            if (!missing.remove(guest.rank())) {
                throw new RendezvousException(
                        "rank " + guest.rank() + " is not one of the " + self.worldSize() + " ranks");
            }
        }
    }

    private Guest next(long deadline) {
        try {
            return arrivals.poll(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RendezvousException("interrupted while waiting for the other ranks", interrupted);
        }
    }

    private String missing(Set<Integer> missing) {
        return (self.worldSize() - missing.size()) + " of " + self.worldSize() + " ranks met at " + self.masterAddress()
                + ":" + self.masterPort() + " within " + timeout.toMillis() / 1000.0 + " s; missing: rank "
                + missing.stream().sorted().map(String::valueOf).collect(Collectors.joining(", "));
    }

    private void answerAll(byte status, byte[] payload) {
        for (Guest guest : guests) {
            try {
                DataOutputStream out = new DataOutputStream(guest.socket().getOutputStream());
                out.write(ByteBuffer.allocate(Long.BYTES + 1 + Integer.BYTES + payload.length)
                        .putLong(IdExchange.MAGIC)
                        .put(status)
                        .putInt(payload.length)
                        .put(payload)
                        .array());
                out.flush();
            } catch (IOException gone) {
                // That rank ended meanwhile: whoever started it says why.
            }
        }
    }

    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException ignored) {
            // Nothing is lost with a listener.
        }
        guests.forEach(guest -> close(guest.socket()));
        arrivals.forEach(guest -> close(guest.socket()));
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException ignored) {
            // It is of no use any more.
        }
    }

    private static void daemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
    }
}
