package io.github.nccl4j.launch;

import java.time.Duration;

/**
 * Connects observers to a kind of store. An artifact that provides such a store names its provider in {@code
 * META-INF/services/io.github.nccl4j.launch.ObserverProvider}. The artifact {@code nccl-NAME} has the scheme NAME.
 *
 * <p><b>Threads.</b> All methods may be called from any thread.
 *
 * @since 0.1
 */
public interface ObserverProvider {
    /** Separates the scheme of an address from the rest. */
    String SEPARATOR = "://";

    /** {@return the scheme of the addresses, such as "zookeeper"} */
    String scheme();

    /**
     * Connects to a store, with the secret of the environment; see {@link StoreObserver#connect(String, Duration)}.
     *
     * @param address the address, with the scheme
     * @param timeout the time to wait for the store
     * @return the observer, to be closed by the caller
     */
    StoreObserver connect(String address, Duration timeout);

    /**
     * As {@link #connect(String, Duration)}, with a secret of the program.
     *
     * @param address the address, with the scheme
     * @param secret the secret, at least 16 bytes
     * @param timeout the time to wait for the store
     * @return the observer, to be closed by the caller
     */
    StoreObserver connect(String address, byte[] secret, Duration timeout);
}
