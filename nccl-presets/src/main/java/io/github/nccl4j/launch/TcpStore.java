package io.github.nccl4j.launch;

import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.launch.env.Endpoint;
import io.github.nccl4j.launch.store.Heartbeat;
import io.github.nccl4j.launch.store.Secret;
import io.github.nccl4j.launch.store.StoreScope;
import io.github.nccl4j.launch.store.StoreSession;
import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.Counter;
import io.github.nccl4j.launch.wire.Wire;
import io.github.nccl4j.library.SystemText;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * A rendezvous over TCP. The process of rank 0, or a process that is no rank, runs a server, and every rank has a
 * connection to the server.
 *
 * <pre>{@code
 * RankInfo self = RankInfo.fromEnvironment();
 * try (TcpStore store = TcpStore.open(self)) {
 *     byte[] id = store.broadcast("id", 0, () -> UniqueId.create().toBytes(), store.timeout());
 *     ...
 * }
 * }</pre>
 *
 * <p><b>Joining.</b> Rank 0 listens at {@link RankInfo#masterAddress} and {@link RankInfo#masterPort}. The other ranks
 * try to connect until the timeout, because rank 0 may start last. They also try again if the store at the address
 * belongs to another job or attempt, because that store may end; and a rank with a secret tries again if a process that has not
 * proven that it knows the secret refuses it. A rank that waits for longer than 10 seconds logs what it waits for. All
 * ranks must expect the same number of ranks, and each rank must have one process; otherwise all ranks get a {@link
 * RendezvousException}. In a job without a name and without a secret, only the process that disagrees gets it, since it may
 * be of another job. When the process of a rank
 * has ended, another process can join in its place: see {@link #attempt}. If another process uses the port, opening
 * fails at rank 0; the store does not choose another port.
 *
 * <p><b>A store that no rank keeps.</b> If {@code NCCL4J_STORE_ADDRESS} is set to the address and port of a {@link
 * TcpStoreServer}, as the nccl4j command does for the ranks that it starts, rank 0 starts no server, and its process may end like
 * that of any other rank.
 *
 * <p><b>Keys.</b> Beside the collective calls of {@link Rendezvous}, a store has keys with values: {@link #set}, {@link #get},
 * {@link #await}, {@link #add}, {@link #delete}. A key keeps its value until it is deleted or the store ends. Keys and
 * values of a store share 64 MiB.
 *
 * <p><b>Lost ranks.</b> When the process of a rank ends, its connection ends. Collective calls in which other ranks wait then
 * fail at once with a {@link RendezvousException} that names it, also if the lost rank has made its call; {@link #gone}
 * includes it, and the other members of its groups are told: {@link #membership}. When the process that keeps the store
 * ends, all calls of all ranks fail; if rank 0 keeps the store, rank 0 is lost.
 *
 * <p><b>Heartbeats.</b> Every rank sends a heartbeat each second, in the thread of its connections, and the store
 * responds. A rank or a store that sends nothing for three heartbeats is silent: it may be stopped, or its host or the
 * network may have failed. Silence is logged and appears in exceptions. By default silence is not a loss, except that
 * the kernel ends the connection of a host that does not respond: after half a minute if the connection is silent,
 * otherwise after the kernel's limit for retransmissions. {@code NCCL4J_STORE_HEARTBEAT} or {@code
 * -Dnccl4j.store.heartbeat} sets the interval in seconds (0 for none), and {@code NCCL4J_STORE_PATIENCE} or {@code
 * -Dnccl4j.store.patience} the seconds of silence after which a rank, or the store, is lost.
 *
 * <p><b>Security.</b> Without a secret, any process that can reach the port can join, and read and change all values.
 * Use a store without a secret on one host or in a trusted network only; rank 0 logs a warning if it listens at an
 * address other than the loopback address. The secret has at least 16 bytes, which should be random. It is in the
 * environment variable {@code NCCL4J_STORE_SECRET} or in the file that {@code NCCL4J_STORE_SECRET_FILE} names,
 * which other users must not be able to read. With a
 * secret, both ends prove by HMAC-SHA256 that they know it, and AES-GCM encrypts and authenticates all further data.
 * The secret protects the store, not the connections of NCCL, which are neither encrypted nor authenticated and which
 * carry the unique ids, too. Rank 0 listens at one address: {@link RankInfo#masterAddress}, or the address in {@code
 * NCCL4J_STORE_BIND} ({@code 0.0.0.0} for all addresses). The store limits the number, duration and memory of
 * connections that have not joined.
 *
 * <p><b>Threads.</b> The rule of {@link Rendezvous} applies. Each process has one daemon thread for all its stores, and rank 0
 * has one more for each store.
 *
 * @since 0.1
 */
public final class TcpStore implements Store {
    /** Limit of the delay of the end of rank 0, in which the other ranks fetch values and reasons. */
    private static final Duration EXIT_TIMEOUT = Duration.ofSeconds(2);

    private static final ProcessStore PROCESS_STORE = new ProcessStore();

    private final RankInfo self;
    private final Duration timeout;
    private final StoreSession session;
    private final StoreScope allRanks;
    private boolean ofProcess;

    /** Holder of the store of the process, and the lock for it. */
    private static final class ProcessStore {
        private TcpStore store;
    }

    private TcpStore(RankInfo self, Duration timeout, StoreSession session) {
        this.self = self;
        this.timeout = timeout;
        this.session = session;
        allRanks = new StoreScope(session);
    }

    /**
     * Opens the store with the settings of the environment. Rank 0 starts the server; every rank connects to it.
     *
     * @param self this rank
     * @return the store, to be closed by the caller
     * @throws IllegalArgumentException if the secret or the address in the environment can't be used
     * @throws RendezvousTimeoutException if rank 0 could not be reached in time
     * @throws RendezvousException if rank 0 can't listen, or does not accept this rank
     */
    public static TcpStore open(RankInfo self) {
        return builder().open(self);
    }

    /**
     * Returns the store of this process, with the settings of the environment. The first call opens it. It stays open until the
     * process ends; closing it does nothing. The process of rank 0 delays its end for up to two seconds, until the other ranks
     * have fetched the values of completed broadcasts and the reason of an abort, and while it has open communicators of this store,
     * which a shutdown hook of the program may close. {@code Communicator.fromEnvironment()} uses this store, in scopes of its own.
     *
     * @param self this rank; the same in every call, but it may have been {@linkplain Rendezvous#locate located} meanwhile
     * @param timeout the timeout of opening, if this call opens the store, and of calls without a timeout
     * @return the store
     * @throws IllegalArgumentException if the secret or the address in the environment can't be used, or if this process has
     *     opened the store as another rank
     * @throws RendezvousTimeoutException if rank 0 could not be reached in time
     * @throws RendezvousException if rank 0 can't listen, or does not accept this rank
     */
    public static TcpStore ofProcess(RankInfo self, Duration timeout) {
        synchronized (PROCESS_STORE) {
            if (PROCESS_STORE.store == null) {
                TcpStore store = builder().timeout(timeout).open(self);
                store.ofProcess = true;
                PROCESS_STORE.store = store;
                if (store.session.hasServer()) {
                    Runtime.getRuntime()
                            .addShutdownHook(
                                    new Thread(() -> store.session.closeServer(EXIT_TIMEOUT), "nccl4j-store-end"));
                }
            } else if (!PROCESS_STORE.store.self.isSameRankAs(self)) {
                throw new IllegalArgumentException("a process must have one rank: its store is open for "
                        + PROCESS_STORE.store.self + ", not for " + self);
            }
            return PROCESS_STORE.store;
        }
    }

    /**
     * Returns a builder with the settings of the environment.
     *
     * @return a builder
     */
    public static Builder builder() {
        return new Builder(SystemText.environment());
    }

    /** Settings of a store. A builder can open several stores. Not thread-safe. */
    public static final class Builder {
        private static final String BIND = "NCCL4J_STORE_BIND";

        private final Map<String, String> environment;
        private Duration timeout = DEFAULT_TIMEOUT;
        private byte[] secret;
        private boolean withoutSecret;
        private boolean withoutServer;
        private InetAddress bind;

        Builder(Map<String, String> environment) {
            this.environment = environment;
        }

        /**
         * Sets the timeout of opening and of calls without a timeout. Default: {@link Rendezvous#DEFAULT_TIMEOUT}.
         *
         * @param timeout the limit, more than 0
         * @return this builder
         * @throws IllegalArgumentException if the timeout is not more than 0 */
        public Builder timeout(Duration timeout) {
            if (timeout.isZero() || timeout.isNegative()) {
                throw new IllegalArgumentException("timeout must be > 0: " + Timeouts.text(timeout));
            }
            this.timeout = timeout;
            return this;
        }

        /**
         * Sets the secret that the ranks share. Default: the secret of the environment, if it is set.
         *
         * @param secret at least 16 bytes, random, the same for all ranks; copied
         * @return this builder
         * @throws IllegalArgumentException if the secret has less than 16 bytes
         */
        public Builder secret(byte[] secret) {
            new Secret(secret, "the secret");
            this.secret = secret.clone();
            withoutSecret = false;
            return this;
        }

        /**
         * Opens stores without a secret, even if the environment sets one.
         *
         * @return this builder
         */
        public Builder withoutSecret() {
            secret = null;
            withoutSecret = true;
            return this;
        }

        /**
         * Opens stores that no rank keeps: rank 0 starts no server, but connects to a {@link TcpStoreServer} at {@link
         * RankInfo#masterAddress} and {@link RankInfo#masterPort}, as the other ranks do. Default: no rank keeps the
         * store if {@code NCCL4J_STORE_ADDRESS} is set and the address and port of the rank equal its value.
         *
         * @return this builder
         */
        public Builder withoutServer() {
            withoutServer = true;
            return this;
        }

        /**
         * Sets the address at which rank 0 listens. Default: {@code NCCL4J_STORE_BIND}; if that is not set, the
         * master's address. The other ranks ignore this setting.
         *
         * @param address an address of the host of rank 0, or the wildcard address
         * @return this builder
         */
        public Builder bind(InetAddress address) {
            bind = Objects.requireNonNull(address, "address");
            return this;
        }

        /**
         * As {@link TcpStore#open}, with the settings of this builder.
         *
         * @param self this rank
         * @return the store, to be closed by the caller
         * @throws IllegalArgumentException if the secret or the address in the environment can't be used
         * @throws RendezvousTimeoutException if the store could not be reached in time
         * @throws RendezvousException if rank 0 can't listen, or the store does not accept this rank
         */
        public TcpStore open(RankInfo self) {
            Secret shared =
                    withoutSecret ? null : secret == null ? Secret.of(environment) : new Secret(secret, "the secret");
            boolean ofRank = !withoutServer && !isStoreAddress(self);
            InetAddress listenAt = self.rank() == 0 && ofRank ? bindAddress() : null;
            StoreSession.Settings settings =
                    new StoreSession.Settings(timeout, shared, listenAt, ofRank, Heartbeat.of(environment));
            return new TcpStore(self, timeout, StoreSession.open(self.values(), settings));
        }

        /**
         * True if, according to the environment, a process that is no rank keeps the store at the address of the rank.
         */
        private boolean isStoreAddress(RankInfo self) {
            String text = environment.getOrDefault(Endpoint.STORE_VARIABLE, "");
            return !text.isBlank()
                    && Endpoint.host(text).equals(self.masterAddress())
                    && Endpoint.port(Endpoint.STORE_VARIABLE, text, RankInfo.DEFAULT_PORT) == self.masterPort();
        }

        private InetAddress bindAddress() {
            String text = environment.getOrDefault(BIND, "").strip();
            if (bind != null || text.isEmpty()) {
                return bind;
            }
            try {
                return InetAddress.getByName(Endpoint.withoutBrackets(text));
            } catch (UnknownHostException unknown) {
                throw new IllegalArgumentException(BIND + " must be an address of this host: " + text, unknown);
            }
        }
    }

    /** {@return the timeout of calls that have no timeout parameter} */
    public Duration timeout() {
        return timeout;
    }

    /** {@return the address of the store, such as "node0:29500"} */
    public String address() {
        return session.address();
    }

    @Override
    public int rank() {
        return self.rank();
    }

    @Override
    public int size() {
        return self.worldSize();
    }

    /* Collectives. */

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        return allRanks.gather(key, value, timeout);
    }

    @Override
    public byte[] broadcast(String key, int root, Supplier<byte[]> value, Duration timeout) {
        return allRanks.broadcast(key, root, value, timeout);
    }

    @Override
    public void barrier(String key, Duration timeout) {
        allRanks.barrier(key, timeout);
    }

    @Override
    public Rendezvous scope(String name) {
        return allRanks.scope(name);
    }

    /**
     * Returns a rendezvous of some of the ranks, with keys of its own, as {@link #scope}; for example, for a
     * communicator of the ranks that survive a failure. Not collective; the ranks must pass the same name and the same
     * list. Calls of the scope need the first process of each rank.
     *
     * @param name the name of the scope; not empty, without a slash
     * @param ranks distinct ranks of this store, including this rank; a rank's index is its rank in the scope
     * @return a view; closing it does nothing
     * @throws IllegalArgumentException if the name can't be used, a rank is out of range, the ranks are not distinct, or they do
     *     not include this rank
     */
    public Rendezvous among(String name, List<Integer> ranks) {
        return allRanks.among(name, ranks);
    }

    @Override
    public Rendezvous among(String name, List<Integer> ranks, List<Integer> attempts) {
        if (attempts.size() != ranks.size()) {
            throw new IllegalArgumentException(
                    "ranks and attempts must have the same length: " + ranks.size() + ", " + attempts.size());
        }
        int own = ranks.indexOf(rank());
        if (own >= 0 && attempts.get(own) != attempt()) {
            throw new IllegalArgumentException("the attempt of rank " + rank() + ", which is this rank, must be "
                    + attempt() + ": " + attempts.get(own));
        }
        return allRanks.among(name, ranks, attempts);
    }

    @Override
    public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return allRanks.inquiry(topic, answer);
    }

    @Override
    public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
        return allRanks.membership(group, number, onLoss);
    }

    @Override
    public Optional<StatusEntry> status(String topic, Supplier<String> text) {
        return allRanks.status(topic, text);
    }

    /**
     * As {@link Rendezvous#abort}. Fails current and future calls of all ranks, including those of all scopes.
     *
     * @param reason the reason, for the messages of the other ranks
     */
    @Override
    public void abort(String reason) {
        allRanks.abort(reason);
    }

    /* Keys. */

    @Override
    public void set(String key, byte[] value) {
        Wire.Frame request = new Wire.Frame().text(Arguments.fullKey("", key)).bytes(Arguments.requireValue(value));
        session.request(Wire.Operation.SET, request, key, timeout);
    }

    @Override
    public byte[] get(String key, Duration timeout) {
        return session.get(Arguments.fullKey("", key), Arguments.nanoseconds(timeout));
    }

    @Override
    public void await(Collection<String> keys, Duration timeout) {
        List<String> full = keys.stream().map(key -> Arguments.fullKey("", key)).toList();
        session.await(full, Arguments.nanoseconds(timeout));
    }

    @Override
    public long add(String key, long delta) {
        Wire.Frame request = new Wire.Frame().text(Arguments.fullKey("", key)).number64(delta);
        return Counter.decode(session.request(Wire.Operation.ADD, request, key, timeout));
    }

    @Override
    public boolean delete(String key) {
        Wire.Frame request = new Wire.Frame().text(Arguments.fullKey("", key));
        return session.request(Wire.Operation.DELETE, request, key, timeout)[0] != 0;
    }

    /**
     * Returns the ranks whose process has joined and is lost or has closed its store. Not collective.
     *
     * @return the ranks in ascending order
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if the connection is lost, or this thread is interrupted
     */
    public List<Integer> gone() {
        return session.gone(timeout);
    }

    @Override
    public int attempt() {
        return session.attempt();
    }

    @Override
    public List<Integer> attempts() {
        return session.attempts(timeout);
    }

    /**
     * Closes the connection of this rank. On rank 0, the call also ends the store; before that, the call waits, for
     * {@link #timeout} at most, until the other ranks have fetched the values of completed broadcasts. A rank that
     * closes the store because of a failure should call {@link #abort} first. Closing again does nothing, as does
     * closing the store {@linkplain #ofProcess of the process}.
     */
    @Override
    public void close() {
        if (!ofProcess) {
            session.close();
        }
    }

    /** {@return a description, such as "store at node0:29500, rank 3 of 8"} */
    @Override
    public String toString() {
        return "store at " + address() + ", rank " + self.rank() + " of " + self.worldSize();
    }
}
