package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.ObserverProvider;
import io.github.nccl4j.launch.StoreObserver;
import io.github.nccl4j.library.SystemText;
import java.time.Duration;

/**
 * Connects {@link StoreObserver}s to the jobs on an ensemble of Apache ZooKeeper servers, whose addresses are such as
 * "zookeeper://zk1:2181,zk2:2181", optionally followed by the path of {@link ZooKeeperStore#builder}. For {@link
 * java.util.ServiceLoader}: programs call {@link StoreObserver#connect(String, Duration)}.
 *
 * <p>The status of a rank has no silence: a rank that is stopped does not answer until its session ends, and is lost then.
 *
 * @since 0.1
 */
public final class ZooKeeperObserverProvider implements ObserverProvider {
    private static final String SCHEME = "zookeeper";

    /** For the loader of services. */
    public ZooKeeperObserverProvider() {}

    @Override
    public String scheme() {
        return SCHEME;
    }

    @Override
    public StoreObserver connect(String address, Duration timeout) {
        return EnvironmentSettings.withSecret(builder(address), SystemText.environment())
                .timeout(timeout)
                .observe(address);
    }

    @Override
    public StoreObserver connect(String address, byte[] secret, Duration timeout) {
        return builder(address).secret(secret).timeout(timeout).observe(address);
    }

    private static ZooKeeperStore.Builder builder(String address) {
        String prefix = SCHEME + SEPARATOR;
        String ensemble = address.startsWith(prefix) ? address.substring(prefix.length()) : "";
        if (ensemble.isBlank()) {
            throw new IllegalArgumentException("the address must have the servers after " + prefix + ", such as "
                    + prefix + "zk1:2181,zk2:2181: " + address);
        }
        return ZooKeeperStore.builder(ensemble);
    }
}
