package io.github.nccl4j.launch;

import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.store.ObserverClient;
import io.github.nccl4j.launch.store.Secret;
import io.github.nccl4j.library.SystemText;
import java.time.Duration;
import java.util.List;

/** An observer of a {@link TcpStore}. */
final class TcpObserver implements StoreObserver {
    private final ObserverClient client;
    private final String address;

    private TcpObserver(ObserverClient client, String address) {
        this.client = client;
        this.address = address;
    }

    static TcpObserver connect(String address, Duration timeout) {
        return connect(address, Secret.of(SystemText.environment()), timeout);
    }

    static TcpObserver connect(String address, byte[] secret, Duration timeout) {
        return connect(address, new Secret(secret, "the secret"), timeout);
    }

    private static TcpObserver connect(String address, Secret secret, Duration timeout) {
        String host = Endpoint.host(address);
        int port = Endpoint.port("the address of a store", address, RankInfo.DEFAULT_PORT);
        return new TcpObserver(ObserverClient.connect(host, port, secret, timeout), Endpoint.format(host, port));
    }

    @Override
    public List<JobStatus> look(Duration timeout) {
        return client.look(timeout);
    }

    @Override
    public String address() {
        return address;
    }

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
