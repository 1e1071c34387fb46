package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.Inquiry;
import io.github.nccl4j.launch.LostRank;
import io.github.nccl4j.launch.Membership;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.StatusEntry;
import io.github.nccl4j.launch.Store;
import io.github.nccl4j.library.SystemText;
import io.github.nccl4j.zookeeper.Job.Process;
import io.github.nccl4j.zookeeper.Session.Node;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.Stat;

/**
 * A store on an ensemble of Apache ZooKeeper servers, which no single process keeps: ranks and servers may fail.
 *
 * <pre>{@code
 * RankInfo self = RankInfo.fromEnvironment();
 * try (ZooKeeperStore store = ZooKeeperStore.builder("zk1:2181,zk2:2181,zk3:2181").open(self);
 *         Recovery recovery = Recovery.begin(store, "training", Communicator.builder())) {
 *     recovery.communicator().allReduce(buffer, ReduceOp.SUM, stream);
 * }
 * }</pre>
 *
 * <p><b>Joining.</b> The ranks of a job meet by its {@linkplain RankInfo#job name} and its {@linkplain RankInfo#restart attempt},
 * below the node {@code /nccl4j}; they do not use {@link RankInfo#masterAddress}. All ranks must expect the same number of ranks.
 * A process that joins as a rank whose process is connected waits until that one's session could have ended, and is refused
 * then. Processes that start again after all ranks have died belong to the old job until all sessions have ended: give
 * them another {@code NCCL4J_RESTART}.
 *
 * <p><b>Lost ranks.</b> A rank is lost when its session ends: at once, or after two seconds, if its process exits without {@link #close}, and at the
 * {@linkplain Builder#sessionTimeout session timeout} if its process is killed or stopped, or if it reaches no server. The
 * other ranks are told at once then. A connection that is lost is no loss: the session continues on another server, also in the
 * middle of a call. All calls of a rank that has lost its session fail. In contrast to a {@link
 * io.github.nccl4j.launch.TcpStore}, the end of the connection of a killed process is not noticed, and a process that is
 * stopped, or in a pause of the garbage collector, for longer than the session timeout is lost.
 *
 * <p><b>The end of the process.</b> A process that ends without {@link #close} ends its session, which the other ranks take for a loss.
 * As the keeper of a {@link io.github.nccl4j.launch.TcpStore}, it waits for up to two seconds while it has open communicators of this
 * store, which a shutdown hook of the program may close, and while such a hook closes the store.
 *
 * <p><b>Broadcasts.</b> The root waits for the other ranks.
 *
 * <p><b>Observers.</b> The command {@code nccl4j status} and {@link io.github.nccl4j.launch.StoreObserver} ask the ranks at the
 * address "zookeeper://zk1:2181,zk2:2181,zk3:2181". A rank that is stopped does not answer, and is lost when its session ends.
 *
 * <p><b>Clean-up.</b> The last rank that closes its store deletes all nodes of the job. If no rank could, because all were
 * killed, the next rank of a job with this name does, or rank 0 of another job with the same secret.
 *
 * <p><b>Security.</b> Without a {@linkplain Builder#secret secret}, any client of the ensemble can read and change all values. With
 * one, the ensemble lets only clients with the same secret use the nodes of the job (digest authentication). The servers get
 * a key that is derived from the secret by HMAC-SHA256, never the secret itself. The connection is not encrypted, unless
 * ZooKeeper's own properties configure TLS ({@code zookeeper.client.secure}). Without TLS, a process that reads the connection
 * learns the key: it can use the nodes of jobs with this secret, but no {@link io.github.nccl4j.launch.TcpStore}.
 *
 * <p>The first process creates the node {@code /nccl4j} with the access list {@code world:anyone:cdr}: anyone may create jobs there,
 * and nobody but an administrator of the ensemble may change the list. A process closes an open list in the same way. If another
 * user has created the node, or that of the job, opening fails with an exception that has its access list.
 *
 * <p><b>Threads.</b> The rule of {@link Rendezvous} applies. Each store has one daemon thread, and those of Curator and ZooKeeper.
 *
 * @since 0.1
 */
public final class ZooKeeperStore implements Store {
    /** Default session timeout: 10 seconds. */
    public static final Duration DEFAULT_SESSION_TIMEOUT = Duration.ofSeconds(10);

    private static final int MIN_SECRET_BYTES = 16;
    private static final int RETRY_MILLIS = 50;

    /** The length of {@link Long#MIN_VALUE} in decimal. */
    private static final int MAX_NUMBER_BYTES = 20;

    private final RankInfo self;
    private final String ensemble;
    private final Duration timeout;
    private final Session session;
    private final Job job;
    private final Roster roster;
    private final NodeScope allRanks;

    private ZooKeeperStore(RankInfo self, Builder settings, Session session) {
        this.self = self;
        this.session = session;
        ensemble = settings.ensemble;
        timeout = settings.timeout;
        job = new Job(session, settings.access(), self);
        roster = new Roster(session, job, self.worldSize());
        job.join(System.nanoTime() + Text.nanoseconds(timeout));
        roster.refresh();
        List<Process> first = IntStream.range(0, self.worldSize())
                .mapToObj(rank -> new Process(rank, 0))
                .toList();
        StatusAnswers status = new StatusAnswers(session, job);
        allRanks = new NodeScope(
                new Gathers(session, job, roster), new Inquiries(session, job), status, roster, "", first, self.rank());
        status.answerSoon();
        if (self.rank() == 0) {
            session.inBackground(job::sweepOthers);
        }
    }

    /**
     * Returns a builder.
     *
     * @param ensemble the addresses of the servers, such as "zk1:2181,zk2:2181,zk3:2181", optionally followed by the path of an
     *     existing node, below which the nodes are created: "zk1:2181,zk2:2181,zk3:2181/training"
     * @return a builder
     */
    public static Builder builder(String ensemble) {
        return new Builder(Objects.requireNonNull(ensemble, "ensemble"));
    }

    /**
     * Returns a builder with the settings of the environment: the addresses in {@code NCCL4J_ZOOKEEPER}, as for {@link
     * #builder(String)}; the seconds of the {@linkplain Builder#sessionTimeout session timeout} in {@code
     * NCCL4J_ZOOKEEPER_SESSION_TIMEOUT}, if it is set; and the {@linkplain Builder#secret secret} in {@code NCCL4J_STORE_SECRET} or
     * in the file that {@code NCCL4J_STORE_SECRET_FILE} names, if one of them is set.
     *
     * @return a builder
     * @throws IllegalArgumentException if {@code NCCL4J_ZOOKEEPER} is not set, or a value can't be used
     */
    public static Builder fromEnvironment() {
        return EnvironmentSettings.builder(SystemText.environment());
    }

    /** Settings of a store. A builder can open several stores. Not thread-safe. */
    public static final class Builder {
        private final String ensemble;
        private Duration timeout = DEFAULT_TIMEOUT;
        private Duration sessionTimeout = DEFAULT_SESSION_TIMEOUT;
        private byte[] secret;

        private Builder(String ensemble) {
            this.ensemble = ensemble;
        }

        /**
         * Sets the timeout of opening. Default: {@link Rendezvous#DEFAULT_TIMEOUT}.
         *
         * @param timeout the limit, more than 0
         * @return this builder
         * @throws IllegalArgumentException if the timeout is not more than 0
         */
        public Builder timeout(Duration timeout) {
            this.timeout = requirePositive("timeout", timeout);
            return this;
        }

        /**
         * Sets the session timeout: the time after which a rank is lost from which the ensemble hears nothing. Default: {@link
         * #DEFAULT_SESSION_TIMEOUT}. A shorter one reports a killed process earlier, but must exceed the pauses of the
         * ranks, and the time in which the ensemble elects a leader. The ensemble has limits of its own; a warning is logged
         * if they change the value.
         *
         * @param sessionTimeout the session timeout, more than 0
         * @return this builder
         * @throws IllegalArgumentException if the session timeout is not more than 0
         */
        public Builder sessionTimeout(Duration sessionTimeout) {
            this.sessionTimeout = requirePositive("sessionTimeout", sessionTimeout);
            return this;
        }

        /**
         * Sets the secret that the ranks share. Default: none.
         *
         * @param secret at least 16 bytes, random, the same for all ranks; copied
         * @return this builder
         * @throws IllegalArgumentException if the secret has less than 16 bytes
         */
        public Builder secret(byte[] secret) {
            if (secret.length < MIN_SECRET_BYTES) {
                throw new IllegalArgumentException(
                        "secret must have >= " + MIN_SECRET_BYTES + " bytes: " + secret.length);
            }
            this.secret = secret.clone();
            return this;
        }

        private static Duration requirePositive(String argument, Duration value) {
            if (value.isZero() || value.isNegative()) {
                throw new IllegalArgumentException(argument + " must be > 0: " + Text.seconds(value));
            }
            return value;
        }

        /**
         * Opens the store: connects to the ensemble and joins the job.
         *
         * @param self this rank; its job must have a name
         * @return the store, to be closed by the caller
         * @throws IllegalArgumentException if the job has no name, or the addresses can't be used
         * @throws RendezvousTimeoutException if no server could be reached in time
         * @throws RendezvousException if the job has another number of ranks, another process is this rank, or the secret is not
         *     that of the job
         */
        public ZooKeeperStore open(RankInfo self) {
            if (self.job().isBlank()) {
                throw new IllegalArgumentException(
                        "the job must have a name, by which its ranks meet at ZooKeeper: set NCCL4J_JOB for " + self);
            }
            Session session = new Session(
                    client(),
                    "rank " + self.rank() + " at ZooKeeper " + ensemble,
                    ". The other ranks count this rank as lost");
            return start(session, () -> new ZooKeeperStore(self, this, session));
        }

        /** Connects an observer. */
        ZooKeeperObserver observe(String address) {
            Session session = new Session(client(), "the observer of ZooKeeper " + ensemble, "");
            return start(session, () -> new ZooKeeperObserver(session, access(), address));
        }

        private <T> T start(Session session, Supplier<T> user) {
            boolean done = false;
            try {
                session.start(timeout, sessionTimeout);
                T made = user.get();
                done = true;
                return made;
            } finally {
                if (!done) {
                    session.close();
                }
            }
        }

        private CuratorFramework client() {
            CuratorFrameworkFactory.Builder client = CuratorFrameworkFactory.builder()
                    .connectString(ensemble)
                    .sessionTimeoutMs(Text.millis(sessionTimeout))
                    .connectionTimeoutMs(Text.millis(sessionTimeout))
                    .retryPolicy(new RetryForever(RETRY_MILLIS));
            access().applyTo(client);
            return client.build();
        }

        private Access access() {
            return new Access(secret);
        }
    }

    Session session() {
        return session;
    }

    Job job() {
        return job;
    }

    @Override
    public int rank() {
        return self.rank();
    }

    @Override
    public int size() {
        return self.worldSize();
    }

    @Override
    public int attempt() {
        return job.attempt();
    }

    @Override
    public List<Integer> attempts() {
        session.requireOpen();
        return roster.current().attempts(size());
    }

    /* Collectives. */

    @Override
    public List<byte[]> gather(String key, byte[] value, Duration timeout) {
        return allRanks.gather(key, value, timeout);
    }

    @Override
    public Rendezvous scope(String name) {
        return allRanks.scope(name);
    }

    @Override
    public Rendezvous among(String name, List<Integer> ranks, List<Integer> attempts) {
        return allRanks.among(name, ranks, attempts);
    }

    @Override
    public Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
        return allRanks.membership(group, number, onLoss);
    }

    @Override
    public Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return allRanks.inquiry(topic, answer);
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

    /** Checks a key, and returns its node. */
    private String node(String key) {
        return job.folder("keys") + "/" + Text.node(Text.requireKey("", key));
    }

    private void requireUsable(String key) {
        session.requireOpen();
        roster.requireNotAborted(key);
    }

    @Override
    public void set(String key, byte[] value) {
        String node = node(key);
        Text.requireValue(value);
        requireUsable(key);
        while (!session.write(node, value) && !session.create(node, value, CreateMode.PERSISTENT)) {
            // Another rank has created or deleted it meanwhile.
            session.requireNotEnded();
        }
    }

    @Override
    public byte[] get(String key, Duration timeout) {
        String path = node(key);
        long nanos = Text.nanoseconds(timeout);
        requireUsable(key);
        long deadline = System.nanoTime() + nanos;
        WaitLog log = session.beginWait();
        while (true) {
            await(List.of(key), deadline, nanos, log);
            Node found = session.read(path);
            if (found != null) {
                return found.data();
            }
        }
    }

    @Override
    public void await(Collection<String> keys, Duration timeout) {
        long nanos = Text.nanoseconds(timeout);
        keys.forEach(this::node);
        session.requireOpen();
        keys.forEach(roster::requireNotAborted);
        await(keys, System.nanoTime() + nanos, nanos, session.beginWait());
    }

    /** Returns when every key has had a value. */
    private void await(Collection<String> keys, long deadline, long nanos, WaitLog log) {
        session.sync(job.folder("keys"));
        for (String key : keys) {
            while (true) {
                long seen = session.events();
                if (session.watch(node(key)) != null) {
                    break;
                }
                session.requireNotEnded();
                roster.requireNotAborted(key);
                if (!session.awaitEvent(seen, deadline, key, log)) {
                    throw new RendezvousTimeoutException(
                            "'" + key + "' was not set within " + Text.seconds(nanos), List.of());
                }
            }
        }
    }

    @Override
    public long add(String key, long delta) {
        String path = node(key);
        requireUsable(key);
        // A value that is no number must be the present one.
        session.sync(path);
        while (true) {
            session.requireNotEnded();
            Node old = session.read(path);
            long sum = sum(key, old == null ? 0 : number(key, old.data()), delta);
            byte[] value = Text.bytes(Long.toString(sum));
            if (session.change(
                    path,
                    operations -> List.of(
                            old == null
                                    ? operations.create().forPath(path, value)
                                    : operations
                                            .setData()
                                            .withVersion(old.stat().getVersion())
                                            .forPath(path, value)))) {
                return sum;
            }
        }
    }

    private static long number(String key, byte[] value) {
        if (value.length > MAX_NUMBER_BYTES) {
            throw new RendezvousException("'" + key + "': the value of a counter must have <= " + MAX_NUMBER_BYTES
                    + " bytes: it has " + value.length);
        }
        String text = new String(value, StandardCharsets.US_ASCII);
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException notANumber) {
            throw new RendezvousException(
                    "'" + key + "': the value of a counter must be a decimal number: '" + text + "'", notANumber);
        }
    }

    private static long sum(String key, long value, long delta) {
        try {
            return Math.addExact(value, delta);
        } catch (ArithmeticException overflow) {
            throw new RendezvousException(
                    "'" + key + "': the sum must be from " + Long.MIN_VALUE + " to " + Long.MAX_VALUE + ": " + value
                            + " + " + delta,
                    overflow);
        }
    }

    @Override
    public boolean delete(String key) {
        String path = node(key);
        session.requireOpen();
        session.sync(path);
        while (true) {
            Stat found = session.stat(path);
            if (found == null) {
                return false;
            }
            if (session.change(
                    path,
                    operations -> List.of(
                            operations.delete().withVersion(found.getVersion()).forPath(path)))) {
                return true;
            }
        }
    }

    /**
     * Leaves the job and ends the session. After an {@linkplain #abort abort}, the last connected rank first waits, for the timeout
     * of the builder at most, until every rank has joined and can learn of it. Closing again does nothing.
     */
    @Override
    public void close() {
        if (!session.beginClose()) {
            return;
        }
        try {
            long deadline = System.nanoTime() + Text.nanoseconds(timeout);
            long seen = session.events();
            while (roster.isAnyUnnotified() && session.awaitEvent(seen, deadline, "close")) {
                seen = session.events();
            }
            roster.leave();
            job.leave();
        } catch (RendezvousException unreachable) {
            // The session ends at its timeout, and the next job deletes the nodes.
        } finally {
            session.close();
        }
    }

    /** {@return a description, such as "store at ZooKeeper zk1:2181,zk2:2181,zk3:2181, rank 3 of 8"} */
    @Override
    public String toString() {
        return "store at ZooKeeper " + ensemble + ", rank " + self.rank() + " of " + self.worldSize();
    }
}
