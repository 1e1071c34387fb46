package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.List;
import java.util.ServiceLoader;
import java.util.ServiceLoader.Provider;

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
 * <p><b>Kinds of stores.</b> An address without a scheme is that of a {@link TcpStore}. Another kind of store has an address with a
 * scheme, such as "zookeeper://zk1:2181,zk2:2181", and needs an artifact with an {@link ObserverProvider} on the class path.
 *
 * <p><b>Threads.</b> One thread at a time, except that any thread may call {@link #close}, which ends a look.
 *
 * @since 0.1
 */
public interface StoreObserver extends AutoCloseable {
    /**
     * Connects to a store, with the secret of the environment.
     *
     * @param address the host, and the port of the store (default {@value RankInfo#DEFAULT_PORT}), such as "node0:29500"; or an
     *     address with a scheme
     * @param timeout the time to wait for the store
     * @return the observer, to be closed by the caller
     * @throws IllegalArgumentException if the address or the secret in the environment can't be used, or no provider on the class path
     *     has the scheme
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if no store listens there, or it refuses this process
     */
    static StoreObserver connect(String address, Duration timeout) {
        int length = address.indexOf(ObserverProvider.SEPARATOR);
        return length < 0
                ? TcpObserver.connect(address, timeout)
                : provider(address.substring(0, length)).connect(address, timeout);
    }

    /**
     * As {@link #connect(String, Duration)}, with a secret of the program.
     *
     * @param address the address of the store
     * @param secret the secret, at least 16 bytes
     * @param timeout the time to wait for the store
     * @return the observer, to be closed by the caller
     */
    static StoreObserver connect(String address, byte[] secret, Duration timeout) {
        int length = address.indexOf(ObserverProvider.SEPARATOR);
        return length < 0
                ? TcpObserver.connect(address, secret, timeout)
                : provider(address.substring(0, length)).connect(address, secret, timeout);
    }

    private static ObserverProvider provider(String scheme) {
        return ServiceLoader.load(ObserverProvider.class, StoreObserver.class.getClassLoader()).stream()
                .map(Provider::get)
                .filter(provider -> provider.scheme().equals(scheme))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("a store with an address " + scheme
                        + ObserverProvider.SEPARATOR + "... can be observed only with the artifact nccl-" + scheme
                        + " and its dependencies on the class path"));
    }

    /**
     * Asks the ranks of all jobs of the store.
     *
     * @param timeout the time to wait for answers, at most 60 s; returns earlier if every connected rank has answered
     * @return the jobs that have a connected rank, or had one a moment ago
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if the connection ends, or the store closes
     */
    List<JobStatus> look(Duration timeout);

    /** {@return the address of the store, such as "node0:29500"} */
    String address();

    /** Ends the connection. Closing again does nothing. */
    @Override
    void close();
}
