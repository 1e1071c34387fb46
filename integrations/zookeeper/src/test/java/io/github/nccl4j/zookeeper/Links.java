package io.github.nccl4j.zookeeper;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/** The links of one rank to some servers, each of which can be silenced: the rank then receives nothing, but the server does. */
final class Links implements AutoCloseable {
    private final List<Link> links = new ArrayList<>();

    Links(List<Integer> ports) throws IOException {
        for (int port : ports) {
            links.add(new Link(port));
        }
    }

    String addresses() {
        return links.stream()
                .map(link -> "127.0.0.1:" + link.listener.getLocalPort())
                .collect(Collectors.joining(","));
    }

    /** Silences the links that have a connection; returns their number. */
    int silenceUsed() {
        List<Link> used = links.stream().filter(link -> !link.sockets.isEmpty()).toList();
        used.forEach(link -> link.silent = true);
        return used.size();
    }

    private static final class Link {
        private final ServerSocket listener = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
        private volatile boolean silent;

        Link(int port) throws IOException {
            start(() -> {
                while (true) {
                    Socket near = listener.accept();
                    sockets.add(near);
                    Socket far = new Socket(InetAddress.getLoopbackAddress(), port);
                    sockets.add(far);
                    start(() -> copy(near, far, false));
                    start(() -> copy(far, near, true));
                }
            });
        }

        private interface Copy {
            void run() throws IOException;
        }

        private static void start(Copy copy) {
            Thread thread = new Thread(() -> {
                try {
                    copy.run();
                } catch (IOException closed) {
                    // One end has closed its socket.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        private void copy(Socket from, Socket to, boolean canBeSilent) throws IOException {
            try (from;
                    to) {
                InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream();
                byte[] some = new byte[1 << 16];
                for (int count = in.read(some); count > 0; count = in.read(some)) {
                    if (!silent || !canBeSilent) {
                        out.write(some, 0, count);
                    }
                }
            } finally {
                sockets.remove(from);
                sockets.remove(to);
            }
        }
    }

    @Override
    public void close() throws IOException {
        for (Link link : links) {
            link.listener.close();
            for (Socket socket : link.sockets) {
                socket.close();
            }
        }
    }
}
