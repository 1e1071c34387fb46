package io.github.nccl4j.testing;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.ThreadLocalRandom;

/** Ports for programs that are told where to listen. */
public final class Ports {
    /** Below the ports that the system chooses for sockets that name none, which other tests have by the hundred. */
    private static final int FIRST = 20_000;

    private static final int END = 32_000;

    private Ports() {}

    /** A port of this machine at which nobody listens. */
    public static int free() {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(FIRST, END);
            try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (IOException taken) {
                continue;
            }
        }
    }

    /** This system's words for a connection to a port of this machine that is refused: they depend on the locale. */
    public static String refusal(int port) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            throw new AssertionError("somebody listens: " + socket);
        } catch (IOException refused) {
            return refused.getMessage();
        }
    }
}
