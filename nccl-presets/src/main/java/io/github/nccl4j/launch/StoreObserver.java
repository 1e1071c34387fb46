package io.github.nccl4j.launch;

import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.store.ObserverClient;
import io.github.nccl4j.launch.store.Secret;
import io.github.nccl4j.library.SystemText;
import java.time.Duration;
import java.util.List;

/**
 * An observer of the jobs of a store. It asks every rank for its status without being a rank. The command {@code nccl4j
 * status} is an observer.
 *
 * <pre>{@code
 * try (StoreObserver observer = StoreObserver.connect("node0:29500", Duration.ofSeconds(5))) {
 *     observer.look(Duration.ofSeconds(1)).forEach(System.out::println);
 * }
 * }</pre>
 *
 * <p>A background thread of each rank answers, even while the rank's other threads are blocked. No call of the job
 * waits for an observer. An observer proves that it has the secret of the store, as ranks do.
 *
 * <p><b>Threads.</b> One thread at a time, except that any thread may call {@link #close}, which ends a look.
 *
 * @since 0.1
 */
public final class StoreObserver implements AutoCloseable {
    private final ObserverClient client;
    private final String address;

    private StoreObserver(ObserverClient client, String address) {
        this.client = client;
        this.address = address;
    }

    /**
     * Connects to a store, with the secret of the environment.
     *
     * @param address the host, and the port of the store (default {@value RankInfo#DEFAULT_PORT}), such as "node0:29500"
     * @param timeout the time to wait for the store
     * @return the observer, to be closed by the caller
     * @throws IllegalArgumentException if the address or the secret in the environment can't be used
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if no store listens there, or it refuses this process
     */
    public static StoreObserver connect(String address, Duration timeout) {
        return connect(address, Secret.of(SystemText.environment()), timeout);
    }

    /**
     * As {@link #connect(String, Duration)}, with a secret of the program.
     *
     * @param address the host and the port of the store
     * @param secret the secret, at least 16 bytes
     * @param timeout the time to wait for the store
     * @return the observer, to be closed by the caller
     */
    public static StoreObserver connect(String address, byte[] secret, Duration timeout) {
        return connect(address, new Secret(secret, "the secret"), timeout);
    }

    private static StoreObserver connect(String address, Secret secret, Duration timeout) {
        String host = Endpoint.host(address);
        int port = Endpoint.port("the address of a store", address, RankInfo.DEFAULT_PORT);
        return new StoreObserver(ObserverClient.connect(host, port, secret, timeout), Endpoint.format(host, port));
    }

    /**
     * Asks the ranks of all jobs of the store.
     *
     * @param timeout the time to wait for answers, at most 60 s; returns earlier if every connected rank has answered
     * @return the jobs that have a connected rank, or had one a moment ago
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if the connection ends, or the store closes
     */
    public List<JobStatus> look(Duration timeout) {
        return client.look(timeout);
    }

    /** {@return the address of the store, such as "node0:29500"} */
    public String address() {
        return address;
    }

    /** Ends the connection. Closing again does nothing. */
    @Override
    public void close() {
        client.close();
    }

    /** {@return a description, such as "observer of the store at node0:29500"} */
    @Override
    public String toString() {
        return "observer of the store at " + address;
    }
}
