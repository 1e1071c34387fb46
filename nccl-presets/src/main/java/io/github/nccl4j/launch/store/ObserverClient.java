package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.JobStatus;
import io.github.nccl4j.launch.RankStatus;
import io.github.nccl4j.launch.RankStatus.State;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.MessageText;
import io.github.nccl4j.launch.wire.Wire;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** Client end of an observer: joins a store without being a rank, and collects the status of the ranks. One thread at a time. */
public final class ObserverClient implements AutoCloseable {
    private static final int MAX_JOBS = 1 << 10;
    private static final int MAX_RANKS = 1 << 20;

    /** Limit of the reports of one look that are kept. */
    private static final long MAX_BYTES = 256L << 20;

    /** Extra nanoseconds for the end of a look, which the store ends at its timeout. */
    private static final long GRACE_NANOS = 2_000_000_000;

    private final String endpoint;
    private final Socket socket;
    private Seal seal;
    private int maxFrameBytes = Wire.MAX_JOIN;
    private int lastNumber;

    private ObserverClient(String endpoint, Socket socket) {
        this.endpoint = endpoint;
        this.socket = socket;
    }

    /**
     * Connects to a store.
     *
     * @param secret the shared secret, or null
     */
    public static ObserverClient connect(String host, int port, Secret secret, Duration timeout) {
        String endpoint = Endpoint.format(host, port);
        long deadline = System.nanoTime() + Arguments.nanoseconds(timeout);
        IOException last = null;
        try {
            for (InetAddress address : InetAddress.getAllByName(host)) {
                Socket socket = new Socket();
                ObserverClient client = new ObserverClient(endpoint, socket);
                try {
                    socket.setTcpNoDelay(true);
                    socket.connect(new InetSocketAddress(address, port), millisUntil(deadline));
                    StoreClient.requireTwoEnds(socket.getLocalSocketAddress(), socket.getRemoteSocketAddress());
                    client.join(secret, deadline);
                    return client;
                } catch (IOException failure) {
                    // A refusal tells more than an address at which nobody listens.
                    last = last instanceof ClientHandshake.RefusedException ? last : failure;
                    client.close();
                    if (failure instanceof ClientHandshake.RefusedException refused && !refused.isRetryable()) {
                        break;
                    }
                }
            }
        } catch (UnknownHostException unknown) {
            throw new RendezvousException("the host name " + host + " can't be resolved", unknown);
        }
        if (last instanceof SocketTimeoutException) {
            throw new RendezvousTimeoutException(
                    "the store at " + endpoint + " did not respond within "
                            + MessageText.seconds(Arguments.nanoseconds(timeout)) + describeKeeper(),
                    List.of());
        }
        throw new RendezvousException(
                (last instanceof ClientHandshake.RefusedException
                                ? "the store at " + endpoint + " can't be observed: "
                                : "no store responds at " + endpoint + ": ")
                        + MessageText.reason(last),
                last);
    }

    private static String describeKeeper() {
        return ": the process that keeps it, which is rank 0 under most launchers, is stopped or can't be reached";
    }

    private void join(Secret secret, long deadline) throws IOException {
        ClientHandshake handshake = new ClientHandshake(secret, "the store", "this process");
        write(Wire.read(receive(deadline), handshake::hello));
        seal = Wire.read(receive(deadline), handshake::verify);
        write(new Wire.Frame().number32(Wire.OBSERVER).toBytes());
        Wire.read(receive(deadline), frame -> {
            ClientHandshake.throwIfRefused(frame);
            return null;
        });
        maxFrameBytes = Wire.MAX_REPORT + Wire.LOOK_HEADER_BYTES + Seal.OVERHEAD;
    }

    /** Asks the ranks of all jobs, and returns when all have answered, or after the timeout. */
    public List<JobStatus> look(Duration timeout) {
        long nanos = Arguments.nanoseconds(timeout);
        long deadline = System.nanoTime() + nanos + GRACE_NANOS;
        try {
            int number = ++lastNumber;
            write(new Wire.Frame().number32(number).number64(nanos).toBytes());
            Looked looked = new Looked();
            while (Wire.read(receive(deadline), frame -> read(frame, number, looked))) {
                // Reads the next part.
            }
            return looked.jobs.stream().map(PartialJob::status).toList();
        } catch (SocketTimeoutException silent) {
            throw new RendezvousTimeoutException(
                    "the store at " + endpoint + " did not respond within " + MessageText.seconds(nanos + GRACE_NANOS)
                            + describeKeeper(),
                    List.of());
        } catch (IOException failure) {
            throw new RendezvousException(
                    "the connection to the store at " + endpoint + " has ended: " + MessageText.reason(failure),
                    failure);
        }
    }

    /** The received part of a look. */
    private static final class Looked {
        private final List<PartialJob> jobs = new ArrayList<>();
        private long bytes;
    }

    private record PartialJob(String name, int restart, int size, Map<Integer, RankStatus> ranks) {
        JobStatus status() {
            List<RankStatus> all = new ArrayList<>(size);
            for (int rank = 0; rank < size; rank++) {
                RankStatus known = ranks.get(rank);
                all.add(known == null ? new RankStatus(rank, State.MISSING, "", Duration.ZERO, Map.of(), 0) : known);
            }
            return new JobStatus(name, restart, all);
        }
    }

    /** Reads a part of the response; returns false at its end. */
    private static boolean read(ByteBuffer frame, int number, Looked looked) throws IOException {
        int received = frame.getInt();
        if (received == Wire.CLOSE_NOTICE) {
            frame.get();
            throw new IOException(Wire.text(frame));
        }
        if (received != number) {
            throw new IOException("number of a response must be " + number + ": " + received);
        }
        looked.bytes += frame.remaining();
        if (looked.bytes > MAX_BYTES) {
            throw new IOException("a response must have <= " + MAX_BYTES + " bytes: " + looked.bytes);
        }
        switch (Wire.Look.read(frame)) {
            case JOB -> {
                PartialJob job = new PartialJob(Wire.text(frame), frame.getInt(), frame.getInt(), new TreeMap<>());
                if (looked.jobs.size() >= MAX_JOBS || job.size < 0 || job.size > MAX_RANKS) {
                    throw new IOException("invalid job: " + looked.jobs.size() + ", " + job.size + " ranks");
                }
                looked.jobs.add(job);
            }
            case RANK -> {
                int index = frame.getInt();
                if (index < 0 || index >= looked.jobs.size()) {
                    throw new IOException("job of a rank must be < " + looked.jobs.size() + ": " + index);
                }
                RankStatus rank = rank(frame);
                looked.jobs.get(index).ranks.put(rank.rank(), rank);
            }
            case END -> {
                return false;
            }
        }
        return true;
    }

    private static RankStatus rank(ByteBuffer frame) throws IOException {
        int rank = frame.getInt();
        int code = frame.get();
        State[] states = State.values();
        if (code < 0 || code >= states.length) {
            throw new IOException("state of a rank must be from 0 to " + (states.length - 1) + ": " + code);
        }
        String process = Wire.text(frame);
        long silence = frame.getLong();
        ByteBuffer report = ByteBuffer.wrap(Wire.bytes(frame));
        Map<String, String> texts = new LinkedHashMap<>();
        int omitted = 0;
        // Empty if the rank has not answered, or its answer did not fit.
        if (report.hasRemaining()) {
            omitted = report.getInt();
            int count = report.getInt();
            for (int i = 0; i < count; i++) {
                texts.put(Wire.text(report), Wire.text(report));
            }
        }
        return new RankStatus(rank, states[code], process, Duration.ofNanos(Math.max(0, silence)), texts, omitted);
    }

    /* Frames. */

    private void write(byte[] plain) throws IOException {
        byte[] content = seal == null ? plain : seal.seal(plain);
        ByteBuffer frame = ByteBuffer.allocate(Integer.BYTES + content.length);
        frame.putInt(content.length).put(content);
        socket.getOutputStream().write(frame.array());
    }

    private ByteBuffer receive(long deadline) throws IOException {
        int length = ByteBuffer.wrap(receive(Integer.BYTES, deadline)).getInt();
        if (length < 0 || length > maxFrameBytes) {
            throw new IOException("another service listens at this address, or a frame is too long: "
                    + Integer.toUnsignedString(length) + " bytes");
        }
        byte[] frame = receive(length, deadline);
        return ByteBuffer.wrap(seal == null ? frame : seal.open(frame));
    }

    private byte[] receive(int length, long deadline) throws IOException {
        byte[] bytes = new byte[length];
        InputStream in = socket.getInputStream();
        for (int filled = 0; filled < length; ) {
            socket.setSoTimeout(millisUntil(deadline));
            int count = in.read(bytes, filled, length - filled);
            if (count < 0) {
                throw new EOFException("the store has closed the connection");
            }
            filled += count;
        }
        return bytes;
    }

    private static int millisUntil(long deadline) throws SocketTimeoutException {
        long millis = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        if (millis <= 0) {
            throw new SocketTimeoutException("the deadline has passed");
        }
        return (int) Math.min(millis, Integer.MAX_VALUE);
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException ignored) {
            // The socket is not used again.
        }
    }
}
