package io.github.nccl4j.launch;

import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * A rendezvous over TCP: rank 0 keeps what the ranks tell each other, in its own process, and each rank has a connection to it.
 *
 * <pre>{@code
 * RankInfo self = RankInfo.fromEnvironment();
 * try (TcpStore store = TcpStore.open(self)) {
 *     byte[] id = store.broadcast("id", 0, () -> UniqueId.create().toBytes(), store.timeout());
 *     ...
 * }
 * }</pre>
 *
 * <p><b>Meeting.</b> Rank 0 listens at {@link RankInfo#masterAddress}. The others try until the timeout, because it may start
 * last. All must be of the same job and attempt, and expect the same number of ranks; two processes of one rank are an
 * error at all ranks. A port that another process has is an error, not a reason to try the next one.
 *
 * <p><b>Beside meetings</b> there are keys with values: {@link #set}, {@link #get}, {@link #await}, {@link #add},
 * {@link #delete}. They stay until they are deleted, or rank 0 ends.
 *
 * <p><b>Who is gone.</b> When a rank's process ends, its connection does. Meetings that need it then end at once with a
 * {@link RendezvousException} that names it, and {@link #gone} tells it. When rank 0 ends, every call of every rank does. A host that
 * vanishes without a word is noticed after half a minute; a process that is stopped, by nothing but the timeouts.
 *
 * <p><b>Security.</b> Without a secret, everyone who can reach the port can take part, and read and change what the ranks tell
 * each other: use it on one host, or in a network that you trust; rank 0 logs a warning elsewhere. With a secret, of at least
 * 16 random bytes in the environment variable {@code NCCL4J_STORE_SECRET} or in the file that {@code NCCL4J_STORE_SECRET_FILE}
 * names, both ends prove by HMAC-SHA256 that they know it, and everything after that is encrypted and authenticated by AES-GCM.
 * It protects the store, not what NCCL itself sends, ids included: NCCL's own connections are neither encrypted nor
 * authenticated. Rank 0 listens at one address alone, {@link RankInfo#masterAddress}, if {@code NCCL4J_STORE_BIND} names no other
 * ({@code 0.0.0.0} for all). Connections of strangers are few, short, and cost little.
 *
 * <p><b>Threads.</b> As {@link Rendezvous} says. Each process has one daemon thread for its stores, and rank 0 another.
 */
public final class TcpStore implements Rendezvous {
    /** The store says itself when a time is over. It may take a moment. */
    private static final Duration SLACK = Duration.ofSeconds(2);

    /** What the others have yet to get or to be told may hold up the end of rank 0's process for so long. */
    private static final Duration LAST_PATIENCE = Duration.ofSeconds(2);

    private static final OfProcess OF_PROCESS = new OfProcess();

    private final RankInfo self;
    private final Duration timeout;
    private final StoreServer server;
    private final StoreClient client;
    private final StoreScope whole;
    private final String place;
    private final Inquiries inquiries = new Inquiries(this);
    private boolean forProcess;
    private boolean closed;

    /** Holds the store of the process, and is the lock for it. */
    private static final class OfProcess {
        private TcpStore store;
    }

    private TcpStore(RankInfo self, Duration timeout, StoreServer server, StoreClient client, String place) {
        this.self = self;
        this.timeout = timeout;
        this.server = server;
        this.client = client;
        this.place = place;
        whole = new StoreScope(this, "", List.of(), self.rank(), self.worldSize());
    }

    /**
     * Meets the store of rank 0, or is it, with the settings of the environment.
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
     * The store of the job that this process is a part of, with the settings of the environment. It is opened when it is asked for
     * first, and kept as long as the process lives; closing it does nothing. When the process of rank 0 ends, the others first get what
     * they wait for and is there. {@code Communicator.fromEnvironment()} uses it, in scopes
     * of its own.
     *
     * @param self this rank, always the same, before or after it was {@linkplain Rendezvous#locate located}
     * @param timeout how long to wait for rank 0 if it is opened now, and for what has no timeout of its own
     * @return the store
     * @throws IllegalArgumentException if the secret or the address in the environment can't be used, or another rank of
     *     this process has opened it
     * @throws RendezvousTimeoutException if rank 0 could not be reached in time
     * @throws RendezvousException if rank 0 can't listen, or does not accept this rank
     */
    public static TcpStore ofProcess(RankInfo self, Duration timeout) {
        synchronized (OF_PROCESS) {
            if (OF_PROCESS.store == null) {
                TcpStore store = builder().timeout(timeout).open(self);
                store.forProcess = true;
                OF_PROCESS.store = store;
                if (store.server != null) {
                    Runtime.getRuntime()
                            .addShutdownHook(new Thread(() -> store.server.close(LAST_PATIENCE), "nccl4j-store-end"));
                }
            } else if (!OF_PROCESS.store.self.isSameRankAs(self)) {
                throw new IllegalArgumentException(
                        "a process is one rank: it is " + OF_PROCESS.store.self + "; now asked for " + self);
            }
            return OF_PROCESS.store;
        }
    }

    /**
     * Settings for a store.
     *
     * @return a builder
     */
    public static Builder builder() {
        return new Builder(SystemText.environment());
    }

    /** Opens stores. A builder can be used again, by one thread at a time. */
    public static final class Builder {
        private static final String BIND = "NCCL4J_STORE_BIND";

        private final Map<String, String> environment;
        private Duration timeout = DEFAULT_TIMEOUT;
        private byte[] secret;
        private boolean withoutSecret;
        private InetAddress bind;

        Builder(Map<String, String> environment) {
            this.environment = environment;
        }

        /**
         * How long to wait for rank 0, and for what has no timeout of its own. Default: {@link Rendezvous#DEFAULT_TIMEOUT}.
         *
         * @param timeout the limit, more than 0
         * @return this builder
         * @throws IllegalArgumentException if it is not more than 0
         */
        public Builder timeout(Duration timeout) {
            if (timeout.isZero() || timeout.isNegative()) {
                throw new IllegalArgumentException("timeout must be > 0: " + timeout);
            }
            this.timeout = timeout;
            return this;
        }

        /**
         * What only the ranks know. Default: that of the environment, if there is one.
         *
         * @param secret at least 16 bytes, random, the same for all ranks; copied
         * @return this builder
         * @throws IllegalArgumentException if it is shorter
         */
        public Builder secret(byte[] secret) {
            new Secret(secret, "the secret");
            this.secret = secret.clone();
            withoutSecret = false;
            return this;
        }

        /**
         * Has no secret, whatever the environment says.
         *
         * @return this builder
         */
        public Builder withoutSecret() {
            secret = null;
            withoutSecret = true;
            return this;
        }

        /**
         * Where rank 0 listens. Default: {@code NCCL4J_STORE_BIND}, else the master's address.
         *
         * @param address an address of rank 0's host, or the one that stands for all
         * @return this builder
         */
        public Builder bind(InetAddress address) {
            bind = Objects.requireNonNull(address, "address");
            return this;
        }

        /**
         * As {@link TcpStore#open}.
         *
         * @param self this rank
         * @return the store, to be closed by the caller
         * @throws IllegalArgumentException if the secret or the address in the environment can't be used
         * @throws RendezvousTimeoutException if rank 0 could not be reached in time
         * @throws RendezvousException if rank 0 can't listen, or does not accept this rank
         */
        public TcpStore open(RankInfo self) {
            Secret known =
                    withoutSecret ? null : secret == null ? Secret.of(environment) : new Secret(secret, "the secret");
            long deadline = System.nanoTime() + Arguments.nanoseconds(timeout);
            StoreServer server = null;
            if (self.rank() == 0) {
                server = StoreServerStarter.start(self, bindAddress(), known);
            }
            boolean done = false;
            try {
                StoreConnector entrance = new StoreConnector(self, known, server, deadline, timeout);
                StoreClient client = entrance.enter();
                done = true;
                return new TcpStore(self, timeout, server, client, entrance.place());
            } finally {
                if (!done && server != null) {
                    server.close(Duration.ZERO);
                }
            }
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

    /** {@return how long calls wait that have no timeout of their own} */
    public Duration timeout() {
        return timeout;
    }

    /** {@return where the store is, such as "node0:29500"} */
    public String address() {
        return place;
    }

    @Override
    public int rank() {
        return self.rank();
    }

    @Override
    public int size() {
        return self.worldSize();
    }

    /* Meetings. */

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        return whole.gather(key, value, timeout);
    }

    @Override
    public byte[] broadcast(String key, int root, Supplier<byte[]> value, Duration timeout) {
        return whole.broadcast(key, root, value, timeout);
    }

    @Override
    public void barrier(String key, Duration timeout) {
        whole.barrier(key, timeout);
    }

    @Override
    public Rendezvous scope(String name) {
        return whole.scope(name);
    }

    /**
     * Some of the ranks, with keys of their own, as {@link #scope}: for a communicator of those that are left, for example. Not
     * collective; those that meet there give the same name and ranks.
     *
     * @param name names the scope; not empty, without a slash
     * @param ranks some ranks of this store, this one among them, each once; their order is that of the ranks there
     * @return a view, which needs no closing; closing it does nothing
     * @throws IllegalArgumentException if a rank is none, is there twice, or this one is not there
     */
    public Rendezvous among(String name, List<Integer> ranks) {
        return whole.among(name, ranks);
    }

    @Override
    public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return whole.inquiry(topic, answer);
    }

    Inquiries inquiries() {
        return inquiries;
    }

    /**
     * As {@link Rendezvous#abort}: calls of every rank end, those of scopes too, now and later.
     *
     * @param reason what happened, for the messages of the others
     */
    @Override
    public void abort(String reason) {
        whole.abort(reason);
    }

    void abort(String prefix, String reason) {
        String shorter = reason.substring(0, Math.min(reason.length(), BroadcastMessage.MAX_REASON_CHARS));
        try {
            ask(Wire.Operation.ABORT, new Wire.Frame().text(prefix).text(shorter), "abort", SLACK);
        } catch (RendezvousException unreachable) {
            // Then the others have noticed, or will.
        }
    }

    /* Arguments. */

    /**
     * Sets the value of a key, whether it has one or not, and wakes those that wait for it. Not collective.
     *
     * @param key the key; not empty, without a slash
     * @param value at most {@value Rendezvous#LONGEST_VALUE} bytes
     * @throws IllegalArgumentException if the key or the value can't be used
     * @throws RendezvousException if the store is full, or can't be reached any more
     */
    public void set(String key, byte[] value) {
        Wire.Frame request = new Wire.Frame().text(Arguments.fullKey("", key)).bytes(Arguments.requireValue(value));
        ask(Wire.Operation.SET, request, key, timeout);
    }

    /**
     * Waits until a key has a value. Not collective.
     *
     * @param key the key; not empty, without a slash
     * @param timeout how long to wait
     * @return the value
     * @throws IllegalArgumentException if the key can't be used, or the timeout is negative
     * @throws RendezvousTimeoutException if it was not set in time
     * @throws RendezvousException if a rank has aborted, rank 0 is gone, or this thread is interrupted
     */
    public byte[] get(String key, Duration timeout) {
        Wire.Frame request =
                new Wire.Frame().number64(Arguments.nanoseconds(timeout)).text(Arguments.fullKey("", key));
        return ask(Wire.Operation.GET, request, key, timeout);
    }

    /**
     * Waits until all of some keys have values. Not collective.
     *
     * @param keys the keys; not empty, without slashes
     * @param timeout how long to wait
     * @throws IllegalArgumentException if a key can't be used, or the timeout is negative
     * @throws RendezvousTimeoutException if one was not set in time; the message names it
     * @throws RendezvousException if a rank has aborted, rank 0 is gone, or this thread is interrupted
     */
    public void await(Collection<String> keys, Duration timeout) {
        Wire.Frame request =
                new Wire.Frame().number64(Arguments.nanoseconds(timeout)).number32(keys.size());
        keys.forEach(key -> request.text(Arguments.fullKey("", key)));
        ask(Wire.Operation.AWAIT, request, String.join("', '", keys), timeout);
    }

    /**
     * Adds to the number that a key has, or to 0, in one step. Not collective. The value is the number in decimal digits.
     *
     * @param key the key; not empty, without a slash
     * @param delta what to add
     * @return the sum
     * @throws IllegalArgumentException if the key can't be used
     * @throws RendezvousException if the value is no number, the sum is too large, or the store can't be reached any more
     */
    public long add(String key, long delta) {
        Wire.Frame request = new Wire.Frame().text(Arguments.fullKey("", key)).number64(delta);
        return Counter.decode(ask(Wire.Operation.ADD, request, key, timeout));
    }

    /**
     * Deletes a key and its value. Not collective.
     *
     * @param key the key; not empty, without a slash
     * @return whether it had a value
     * @throws IllegalArgumentException if the key can't be used
     * @throws RendezvousException if the store can't be reached any more
     */
    public boolean delete(String key) {
        Wire.Frame request = new Wire.Frame().text(Arguments.fullKey("", key));
        return ask(Wire.Operation.DELETE, request, key, timeout)[0] != 0;
    }

    /**
     * The ranks that have been here and are not any more: lost, or closed. Not collective.
     *
     * @return the ranks in their order
     * @throws RendezvousException if the store can't be reached any more
     */
    public List<Integer> gone() {
        return gone(Arguments.nanoseconds(timeout) + SLACK.toNanos());
    }

    List<Integer> gone(long patience) {
        ByteBuffer answer = ByteBuffer.wrap(ask(Wire.Operation.GONE, new Wire.Frame(), "gone", patience));
        try {
            return List.copyOf(Wire.read(answer, Wire::numbers));
        } catch (IOException wrong) {
            throw new RendezvousException("the store at " + place + " answered nonsense", wrong);
        }
    }

    /* How it is done. */

    /** Asks the store and waits for the answer, a little longer than the store itself waits. */
    byte[] ask(Wire.Operation operation, Wire.Frame request, String what, Duration limit) {
        return ask(operation, request, what, Arguments.nanoseconds(limit) + SLACK.toNanos());
    }

    /** As above, with the time in which the answer must be here. */
    byte[] ask(Wire.Operation operation, Wire.Frame request, String what, long patience) {
        return content(begin(operation, request), what, patience);
    }

    /** Asks the store. */
    CompletableFuture<ByteBuffer> begin(Wire.Operation operation, Wire.Frame request) {
        requireOpen();
        return client.ask(operation, request);
    }

    synchronized void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the store is closed");
        }
    }

    /** Waits for what the store answers. */
    byte[] content(CompletableFuture<ByteBuffer> answer, String what, long patience) {
        try {
            return ResponseReader.content(answer.get(patience, TimeUnit.NANOSECONDS), self.rank());
        } catch (TimeoutException silent) {
            throw new RendezvousTimeoutException(
                    "rank 0 at " + place + " has not answered rank " + self.rank() + " about '" + what + "' within "
                            + MessageText.seconds(patience),
                    List.of(0));
        } catch (ExecutionException failure) {
            throw new RendezvousException(
                    "rank " + self.rank() + " has lost rank 0 at " + place + ", which keeps the store: "
                            + MessageText.reason(failure.getCause()),
                    failure.getCause());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new RendezvousException(
                    "rank " + self.rank() + " was interrupted while it waited for '" + what + "'", interrupted);
        } finally {
            answer.cancel(false);
        }
    }

    /**
     * Ends this rank's part. At rank 0 the store ends with it: this waits, at most {@link #timeout}, until the others have fetched what
     * this rank has broadcast; who fails should {@link #abort} first. The store {@linkplain #ofProcess of the process} stays open.
     */
    @Override
    public void close() {
        synchronized (this) {
            if (closed || forProcess) {
                return;
            }
            closed = true;
        }
        try {
            client.ask(Wire.Operation.LEAVE, new Wire.Frame()).get(SLACK.toNanos(), TimeUnit.NANOSECONDS);
        } catch (ExecutionException | TimeoutException alreadyGone) {
            // Then nobody waits for this rank any more.
        } catch (InterruptedException hurry) {
            Thread.currentThread().interrupt();
        }
        client.abandon();
        EventLoop.releaseByClient();
        if (server != null) {
            server.close(timeout);
        }
    }

    /** {@return such as "store at node0:29500, rank 3 of 8"} */
    @Override
    public String toString() {
        return "store at " + place + ", rank " + self.rank() + " of " + self.worldSize();
    }
}
