package io.github.nccl4j.ras;

import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.library.SystemText;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * A client of the RAS service of a running NCCL job. The RAS thread of any process of the job answers for the whole
 * job, even while the other threads are blocked in NCCL.
 *
 * <pre>{@code
 * try (RasClient ras = RasClient.connect("node0:28028", Duration.ofSeconds(5))) {
 *     System.out.println(ras.status(RasFormat.TEXT, Duration.ofSeconds(5)));
 * }
 * }</pre>
 *
 * <p>NCCL listens at {@code localhost:28028}, or at {@code NCCL_RAS_ADDR}. With {@code NCCL_RAS_ENABLE=0}, NCCL does
 * not listen. A report without errors is no proof of health: for a collective that hangs, RAS reports only numbers of
 * operations that differ between ranks.
 *
 * <p><b>A question may crash the job</b> in some releases of NCCL: see {@link RasDefect#of}.
 *
 * <p>A client asks one question: it calls {@link #status} or {@link #monitor} once.
 *
 * <p><b>Threads.</b> One thread at a time, except that any thread may call {@link #close}, which ends the other calls.
 *
 * @since 0.1
 */
public final class RasClient implements AutoCloseable {
    /** The port of the service without {@code NCCL_RAS_ADDR}. */
    public static final int DEFAULT_PORT = 28028;

    private static final int PROTOCOL = 2;

    /** Limit for the response of a process that is not stopped. */
    private static final long ATTEMPT_NANOS = 500_000_000;

    private static final int MAX_LINE_BYTES = 1 << 20;
    private static final int MAX_REPORT_BYTES = 256 << 20;
    private static final int MAX_TIMEOUT_SECONDS = 3600;

    /** NCCL waits this long beyond the timeout for the answers that other processes gather; a report gathers twice. */
    private static final int GATHER_SECONDS = 5;

    private static final int GATHERINGS = 2;
    private static final long NO_DEADLINE = Long.MAX_VALUE;

    private final String service;
    private final InetSocketAddress remote;
    private final Socket socket;
    private InputStream in;
    private boolean asked;
    private int gatherSeconds = GATHER_SECONDS;

    private RasClient(String service, InetSocketAddress remote) {
        this.service = service;
        this.remote = remote;
        socket = new Socket();
    }

    /** {@return the address at which NCCL listens in this environment: {@code NCCL_RAS_ADDR}, or {@code localhost:28028}} */
    public static String defaultAddress() {
        String set = SystemText.environment().getOrDefault("NCCL_RAS_ADDR", "").strip();
        return set.isEmpty() ? "localhost:" + DEFAULT_PORT : set;
    }

    /**
     * Connects to a service.
     *
     * @param address the host, and the port (default {@value #DEFAULT_PORT}), such as "node0:28028"
     * @param timeout the time to wait for the service
     * @return the client, to be closed by the caller
     * @throws IllegalArgumentException if the address can't be used, or the timeout is not positive
     * @throws RasException if no RAS service responds there in time
     */
    public static RasClient connect(String address, Duration timeout) {
        String host = Endpoint.host(address);
        int port = Endpoint.port("the address of a RAS service", address, DEFAULT_PORT);
        long deadline = deadline(timeout);
        String service = Endpoint.format(host, port);
        InetAddress[] candidates;
        try {
            candidates = InetAddress.getAllByName(host);
        } catch (UnknownHostException unknown) {
            throw new RasException("the host name " + host + " can't be resolved", unknown);
        }
        IOException last;
        do {
            last = null;
            for (InetAddress candidate : candidates) {
                RasClient client = new RasClient(service, new InetSocketAddress(candidate, port));
                long attempt = Math.min(deadline, System.nanoTime() + ATTEMPT_NANOS);
                try {
                    client.socket.connect(client.remote, millisUntil(attempt));
                    client.greet(attempt);
                    return client;
                } catch (IOException failure) {
                    client.close();
                    // Of several failures, one that another attempt may not have.
                    last = last instanceof SocketTimeoutException ? last : failure;
                }
            }
            // All processes of a machine listen at the same port, and the kernel chooses one: this one may be stopped.
        } while (last instanceof SocketTimeoutException && System.nanoTime() - deadline < 0);
        throw new RasException("no RAS service responds at " + service + ": " + reason(last), last);
    }

    private void greet(long deadline) throws IOException {
        send("CLIENT PROTOCOL " + PROTOCOL);
        String greeting = receiveLine(deadline);
        if (!greeting.regionMatches(true, 0, "SERVER PROTOCOL ", 0, "SERVER PROTOCOL ".length())) {
            throw new IOException("another service listens there");
        }
    }

    /**
     * Asks for the state of the job. Takes at most twice the timeout and 10 s: the service gathers the state of the processes, then
     * that of the communicators.
     *
     * @param format the format of the report
     * @param timeout the time for which the service waits for other processes; whole seconds, from 1 s to 1 h
     * @return the report
     * @throws IllegalArgumentException if the timeout is out of its range
     * @throws IllegalStateException if this client has asked already
     * @throws RasException if the service does not know the format, does not respond in time, or ends the connection, for example because its process ends
     */
    public String status(RasFormat format, Duration timeout) {
        long seconds = timeout.toSeconds();
        if (seconds < 1 || seconds > MAX_TIMEOUT_SECONDS) {
            throw new IllegalArgumentException(
                    "timeout must be from 1 s to " + MAX_TIMEOUT_SECONDS + " s: " + Timeouts.text(timeout));
        }
        requireFirst();
        long deadline = deadline(reportLimit(seconds));
        try {
            request("TIMEOUT " + seconds, deadline);
            requestFormat(format, deadline);
            send(format == RasFormat.VERBOSE_TEXT ? "VERBOSE STATUS" : "STATUS");
            ByteArrayOutputStream report = new ByteArrayOutputStream();
            byte[] part = new byte[1 << 14];
            for (int count = receive(part, deadline); count >= 0; count = receive(part, deadline)) {
                report.write(part, 0, count);
                if (report.size() > MAX_REPORT_BYTES) {
                    throw new IOException("a report must have <= " + MAX_REPORT_BYTES + " bytes: " + report.size());
                }
            }
            if (report.size() == 0) {
                throw new EOFException("it has closed the connection without a report");
            }
            return report.toString(StandardCharsets.UTF_8);
        } catch (IOException failure) {
            throw failed(failure);
        }
    }

    /**
     * Receives events until this client is closed or the service ends, for example with the job; then returns.
     *
     * @param format the format of the events: {@link RasFormat#TEXT} or {@link RasFormat#JSON}
     * @param events the groups of events; not empty
     * @param line the receiver of each line, without its line end; called in this thread
     * @throws IllegalArgumentException if there is no group, or the format is that of reports
     * @throws IllegalStateException if this client has asked already
     * @throws RasException if the service can't report events, which needs NCCL 2.29, or if the connection breaks
     */
    public void monitor(RasFormat format, Set<RasEvents> events, Consumer<String> line) {
        if (events.isEmpty() || format == RasFormat.VERBOSE_TEXT) {
            throw new IllegalArgumentException(
                    "events must be of at least one group, as TEXT or JSON: " + events + ", " + format);
        }
        requireFirst();
        long deadline = deadline(Duration.ofSeconds(gatherSeconds));
        try {
            requestFormat(format, deadline);
            request(
                    "MONITOR " + events.stream().sorted().map(RasEvents::word).collect(Collectors.joining(",")),
                    deadline);
            socket.setSoTimeout(0);
            for (String next = readLine(NO_DEADLINE); next != null; next = readLine(NO_DEADLINE)) {
                line.accept(next);
            }
        } catch (IOException failure) {
            if (!socket.isClosed()) {
                throw failed(failure);
            }
        }
    }

    /** The limit for a report whose gatherings have a timeout of some seconds. */
    Duration reportLimit(long seconds) {
        return Duration.ofSeconds(GATHERINGS * (seconds + gatherSeconds));
    }

    /** Sets the time by which a gathering may exceed its timeout. */
    void setGatherSeconds(int seconds) {
        gatherSeconds = seconds;
    }

    private void requireFirst() {
        if (asked) {
            throw new IllegalStateException("a client of a RAS service asks one question: connect again");
        }
        asked = true;
    }

    private RasException failed(IOException failure) {
        return new RasException("the RAS service at " + service + " failed: " + reason(failure), failure);
    }

    private static String reason(IOException failure) {
        if (failure instanceof SocketTimeoutException) {
            return "it did not respond in time";
        }
        return failure.getMessage() == null ? failure.toString() : failure.getMessage();
    }

    /* Lines. */

    private void requestFormat(RasFormat format, long deadline) throws IOException {
        if (format == RasFormat.JSON) {
            request("SET FORMAT json", deadline);
        }
    }

    private void request(String command, long deadline) throws IOException {
        send(command);
        String response = receiveLine(deadline);
        if (!response.equalsIgnoreCase("OK")) {
            String known = response.toLowerCase(Locale.ROOT).startsWith("error: unknown command")
                    ? " (SET FORMAT needs NCCL 2.28.7, MONITOR needs 2.29)"
                    : "";
            throw new IOException("its response to " + command + " was " + response + known);
        }
    }

    private void send(String command) throws IOException {
        socket.getOutputStream().write((command + "\n").getBytes(StandardCharsets.US_ASCII));
    }

    private String receiveLine(long deadline) throws IOException {
        String line = readLine(deadline);
        if (line == null) {
            throw new EOFException("it has closed the connection");
        }
        return line;
    }

    /** Returns null at the end of the connection. */
    private String readLine(long deadline) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        byte[] one = new byte[1];
        while (receive(one, deadline) >= 0) {
            if (one[0] == '\n') {
                return line.toString(StandardCharsets.UTF_8).stripTrailing();
            }
            line.write(one[0]);
            if (line.size() > MAX_LINE_BYTES) {
                throw new IOException("another service listens there");
            }
        }
        return null;
    }

    private int receive(byte[] into, long deadline) throws IOException {
        if (deadline != NO_DEADLINE) {
            socket.setSoTimeout(millisUntil(deadline));
        }
        if (in == null) {
            in = new BufferedInputStream(socket.getInputStream());
        }
        return in.read(into);
    }

    private static long deadline(Duration timeout) {
        if (timeout.isNegative() || timeout.isZero()) {
            throw new IllegalArgumentException("timeout must be > 0: " + Timeouts.text(timeout));
        }
        return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeout.toMillis());
    }

    private static int millisUntil(long deadline) throws SocketTimeoutException {
        long millis = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        if (millis <= 0) {
            throw new SocketTimeoutException("the deadline has passed");
        }
        return (int) Math.min(millis, Integer.MAX_VALUE);
    }

    /** Ends the connection. Closing again does nothing. */
    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException ignored) {
            // The socket is not used again.
        }
    }

    /** {@return the address at which this client has reached the service} */
    public InetSocketAddress remoteAddress() {
        return remote;
    }

    /** {@return a description, such as "client of the RAS service at node0:28028"} */
    @Override
    public String toString() {
        return "client of the RAS service at " + service;
    }
}
