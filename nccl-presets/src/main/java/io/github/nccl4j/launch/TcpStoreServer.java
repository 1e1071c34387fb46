package io.github.nccl4j.launch;

import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.store.Secret;
import io.github.nccl4j.launch.store.StoreServer;
import io.github.nccl4j.library.SystemText;
import java.net.InetAddress;
import java.time.Duration;

/**
 * The server of a {@link TcpStore} in a process that is no rank. The store outlives every rank. The nccl4j command runs
 * a server for the ranks that it starts; {@code nccl4j store} runs a server for any launcher.
 *
 * <pre>{@code
 * try (TcpStoreServer server = TcpStoreServer.start(InetAddress.getLoopbackAddress(), 0)) {
 *     // Start the ranks with NCCL4J_STORE_ADDRESS=server.address(), and wait for them.
 * }
 * }</pre>
 *
 * <p>Ranks with the environment variable {@code NCCL4J_STORE_ADDRESS} meet at this server. It serves several jobs, which do not
 * see each other: ranks of one job have the same {@link RankInfo#job} and {@link RankInfo#restart}. A job ends when its last rank
 * has disconnected; then its name and attempt can be used again.
 *
 * <p><b>Security.</b> As for {@link TcpStore}: the secret of the environment applies, or that of the program. Without a secret, any
 * process that can reach the port can join, also one of another user of this host.
 *
 * <p><b>Threads.</b> All methods may be called from any thread. A server has one daemon thread.
 *
 * @since 0.1
 */
public final class TcpStoreServer implements AutoCloseable {
    private final StoreServer server;

    private TcpStoreServer(StoreServer server) {
        this.server = server;
    }

    /**
     * Starts a server with the secret of the environment. The server listens when this returns.
     *
     * @param address an address of this host, or the wildcard address
     * @param port the port; 0 chooses a free one
     * @return the server, to be closed by the caller
     * @throws IllegalArgumentException if the port is out of range, or the secret in the environment can't be used
     * @throws RendezvousException if the port is taken, or the address is not of this host
     */
    public static TcpStoreServer start(InetAddress address, int port) {
        return new TcpStoreServer(StoreServer.startAlone(address, port, Secret.of(SystemText.environment())));
    }

    /**
     * As {@link #start(InetAddress, int)}, with a secret of the program instead of that of the environment.
     *
     * @param address an address of this host, or the wildcard address
     * @param port the port; 0 chooses a free one
     * @param secret at least 16 bytes, random; the ranks need the same
     * @return the server, to be closed by the caller
     * @throws IllegalArgumentException if the port is out of range, or the secret has less than 16 bytes
     * @throws RendezvousException if the port is taken, or the address is not of this host
     */
    public static TcpStoreServer start(InetAddress address, int port, byte[] secret) {
        return new TcpStoreServer(StoreServer.startAlone(address, port, new Secret(secret, "the secret")));
    }

    /** {@return the address and port, such as "127.0.0.1:29500": the value of {@code NCCL4J_STORE_ADDRESS} for ranks} */
    public String address() {
        return Endpoint.format(server.address().getAddress().getHostAddress(), port());
    }

    /** {@return the port} */
    public int port() {
        return server.address().getPort();
    }

    /** Ends the store: connected ranks are told. Closing again does nothing. */
    @Override
    public void close() {
        server.close(Duration.ZERO);
    }

    /** {@return a description, such as "store at 127.0.0.1:29500"} */
    @Override
    public String toString() {
        return "store at " + address();
    }
}
