package io.github.nccl4j.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.StandardSocketOptions;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;

/** A service of lines at a free port of this machine: answers each line, and ends the connection where there is no answer. */
public final class ServedLines implements AutoCloseable {
    private final ServerSocket server = new ServerSocket();
    private final Thread thread;

    /** The lines that were received. */
    public final List<String> received = new CopyOnWriteArrayList<>();

    /** The answer is sent as it is; if it ends with END, the connection is closed after it. */
    public static final String END = "\0";

    public ServedLines(Function<String, String> answer) throws IOException {
        // As the services of NCCL, which share a port.
        server.setOption(StandardSocketOptions.SO_REUSEPORT, true);
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        thread = new Thread(() -> {
            while (!server.isClosed()) {
                try (Socket client = server.accept()) {
                    serve(client, answer);
                } catch (SocketException closed) {
                    // The test has ended.
                } catch (IOException failure) {
                    throw new UncheckedIOException(failure);
                }
            }
        });
        thread.start();
    }

    private void serve(Socket client, Function<String, String> answer) throws IOException {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(client.getInputStream(), StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            received.add(line);
            String text = answer.apply(line);
            boolean ends = text.endsWith(END);
            client.getOutputStream().write(text.replace(END, "").getBytes(StandardCharsets.UTF_8));
            if (ends) {
                return;
            }
        }
    }

    public int port() {
        return server.getLocalPort();
    }

    public String address() {
        return "127.0.0.1:" + port();
    }

    @Override
    public void close() throws IOException {
        server.close();
        try {
            thread.join();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
