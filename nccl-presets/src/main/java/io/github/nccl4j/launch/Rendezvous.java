package io.github.nccl4j.launch;

import io.github.nccl4j.launch.wire.Arguments;
import io.github.nccl4j.launch.wire.BroadcastMessage;
import io.github.nccl4j.launch.wire.LocalRanks;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * An exchange of small values between a fixed number of ranks outside NCCL, for example to create a communicator.
 *
 * <pre>{@code
 * byte[] id = rendezvous.broadcast("id", 0, () -> UniqueId.create().toBytes(), Rendezvous.DEFAULT_TIMEOUT);
 * List<byte[]> hosts = rendezvous.gather("host", host.getBytes(StandardCharsets.UTF_8), Duration.ofSeconds(60));
 * rendezvous.barrier("start", Duration.ofSeconds(60));
 * }</pre>
 *
 * <p><b>Collective calls.</b> Every rank calls {@link #gather}, {@link #broadcast} and {@link #barrier} with the same key. Calls
 * are matched by key, not by order. A key can be used again when all ranks have returned from its last use.
 *
 * <p><b>Failure.</b> Every call ends at its timeout at the latest. The {@link RendezvousTimeoutException} then names the missing
 * ranks, and all ranks that wait in the same call, or make it later, get the same exception. When a rank is lost or calls {@link
 * #abort}, the calls that need it fail at once.
 *
 * <p><b>Threads.</b> All methods may be called from any thread, and several threads may wait at the same time. A thread that is
 * interrupted while it waits gets a {@link RendezvousException} and keeps its interrupt status.
 *
 * <p><b>Implementations.</b> An environment with its own exchange of bytes, such as an MPI library or Spark's barrier
 * tasks, implements {@link #rank}, {@link #size}, {@link #gather} and {@link #close}; the other methods have default
 * implementations. A value has at most {@value #LONGEST_VALUE} bytes.
 *
 * @since 0.1
 */
public interface Rendezvous extends AutoCloseable {
    /** Default timeout of calls that wait for other ranks: 5 minutes. */
    Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

    /** Maximum length of a value: {@value} bytes. */
    int LONGEST_VALUE = Arguments.LONGEST_VALUE;

    /** {@return this rank, from 0} */
    int rank();

    /** {@return the number of ranks} */
    int size();

    /**
     * Returns the values of all ranks to every rank. Collective.
     *
     * @param key the key; not empty, without a slash
     * @param value this rank's value, 0 to {@value #LONGEST_VALUE} bytes
     * @param timeout the time to wait for the other ranks
     * @return the values by rank
     * @throws IllegalArgumentException if the value is too long, the key can't be used, or the timeout is negative
     * @throws RendezvousTimeoutException if not all ranks make the call in time
     * @throws RendezvousException if a rank is lost or has aborted, or this thread is interrupted
     */
    List<byte[]> gather(String key, byte[] value, Duration timeout);

    /**
     * Returns the value of the root to every rank. Collective. The root does not wait for the other ranks in a {@link TcpStore};
     * it may in other implementations.
     *
     * <p>If the supplier throws, the root gets that exception, and the other ranks get a {@link RendezvousException} with its
     * message.
     *
     * @param key the key; not empty, without a slash
     * @param root the rank that provides the value
     * @param value the supplier of the value, less than {@value #LONGEST_VALUE} bytes; called on the root only
     * @param timeout the time to wait for the root
     * @return the value
     * @throws IllegalArgumentException if the value is too long, the key can't be used, the timeout is negative, or the root is
     *     out of range
     * @throws RendezvousTimeoutException if the root does not make the call in time
     * @throws RendezvousException if the root failed, a rank is lost or has aborted, or this thread is interrupted
     */
    default byte[] broadcast(String key, int root, Supplier<byte[]> value, Duration timeout) {
        BroadcastMessage.requireRoot(root, size());
        if (rank() != root) {
            return BroadcastMessage.decode(gather(key, new byte[0], timeout).get(root), root);
        }
        return BroadcastMessage.send(value, message -> gather(key, message, timeout));
    }

    /**
     * Waits until all ranks have made this call. Collective.
     *
     * @param key the key; not empty, without a slash
     * @param timeout the time to wait for the other ranks
     * @throws IllegalArgumentException if the key can't be used, or the timeout is negative
     * @throws RendezvousTimeoutException if not all ranks make the call in time
     * @throws RendezvousException if a rank is lost or has aborted, or this thread is interrupted
     */
    default void barrier(String key, Duration timeout) {
        gather(key, new byte[0], timeout);
    }

    /**
     * Finds the local rank and the local world size of this rank if its launcher did not provide them. Collective if {@link
     * RankInfo#hasLocalRank} is false; otherwise returns {@code self} at once. {@link RankInfo#hasLocalRank} must be the same for
     * all ranks; {@link TcpStore} refuses a rank for which it differs.
     *
     * <p>Ranks are on one host if their host names and the ids of their kernel's boot are equal, or if their values of
     * {@code NCCL_HOSTID} are equal. As in NCCL, a container with a host name of its own is a host. Local ranks are in
     * the order of the ranks.
     *
     * @param self this rank
     * @param timeout the time to wait for the other ranks
     * @return this rank, with its local rank and local world size
     * @throws IllegalArgumentException if {@code self} is not this rank of this rendezvous
     * @throws RendezvousTimeoutException if not all ranks make the call in time
     * @throws RendezvousException if the local rank or local world size that a launcher has set contradicts the hosts of the
     *     ranks, a rank is lost or has aborted, or this thread is interrupted
     */
    default RankInfo locate(RankInfo self, Duration timeout) {
        if (self.rank() != rank() || self.worldSize() != size()) {
            throw new IllegalArgumentException(
                    "self must be this rank of the rendezvous, rank " + rank() + " of " + size() + ": " + self);
        }
        if (self.hasLocalRank()) {
            return self;
        }
        byte[] own;
        try {
            own = LocalRanks.entry(self.values());
        } catch (RendezvousException nameless) {
            abort(nameless.getMessage());
            throw nameless;
        }
        LocalRanks.Location found = LocalRanks.locate(self.rank(), gather(LocalRanks.KEY, own, timeout));
        return self.withLocalRank(found.localRank(), found.localWorldSize());
    }

    /**
     * Returns a rendezvous of the same ranks with keys of its own. Equal keys of different scopes never match. Not collective.
     *
     * @param name the name of the scope; not empty, without a slash, the same for all ranks
     * @return a view; closing it does nothing
     * @throws IllegalArgumentException if the name can't be used
     */
    default Rendezvous scope(String name) {
        return new Scope(this, Arguments.scopePrefix("", name));
    }

    /**
     * Opens an inquiry. A background thread then answers the questions of other ranks for this rank, even while this
     * rank's threads are blocked, and this rank can ask the others. Not collective, but a rank that has not opened the
     * inquiry does not answer.
     *
     * @param topic the topic; not empty, without a slash; without an open inquiry at this rank
     * @param answer the supplier of this rank's answer; must not block. The answers of all ranks share 64 KiB; a longer
     *     answer is cut off
     * @return the inquiry, which the caller closes; empty if this rendezvous does not support inquiries. A {@link
     *     TcpStore} supports them for up to 4096 ranks; the default implementation does not
     * @throws IllegalArgumentException if the topic can't be used, or has an open inquiry
     * @throws IllegalStateException if this rendezvous is closed
     */
    default Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return Optional.empty();
    }

    /**
     * Enters a group of ranks whose members are told at once if a member is lost. Not collective: a rank that enters
     * later is told of members that were lost before. For example, a program can end the calls that wait for a lost
     * rank.
     *
     * @param group the name of the group; not empty, without a slash; this rank must not be a member already
     * @param number the number of this rank in the group, at least 0, different for each member
     * @param onLoss called once for each lost member, by a background thread that serves all memberships; must not block
     * @return the membership, which the caller closes; empty if this rendezvous does not report lost ranks. A {@link
     *     TcpStore} reports them; the default implementation does not
     * @throws IllegalArgumentException if the name can't be used, the number is negative, or this rank is a member
     * @throws IllegalStateException if this rendezvous is closed
     */
    default Optional<Membership> membership(String group, int number, Consumer<LostRank> onLoss) {
        return Optional.empty();
    }

    /**
     * Adds a text to the status of this rank, which the command {@code nccl4j status} and {@link StoreObserver} show. Each
     * communicator that was created at this rendezvous adds one. Not collective.
     *
     * @param topic the topic; not empty, without a slash; without a text at this rank
     * @param text the supplier of the text, called in a background thread when an observer asks; must not block. The
     *     texts of a rank share 16 KiB
     * @return the entry, which the caller closes; empty if this rendezvous can't be observed. A {@link TcpStore} and
     *     {@code ZooKeeperStore} of the artifact {@code nccl-zookeeper} can be observed; the default implementation can't
     * @throws IllegalArgumentException if the topic can't be used, or has a text
     * @throws IllegalStateException if this rendezvous is closed
     */
    default Optional<StatusEntry> status(String topic, Supplier<String> text) {
        return Optional.empty();
    }

    /**
     * Reports to the other ranks that this rank has failed. Their calls that wait for this rank fail with a {@link
     * RendezvousException} that contains the reason. Does not wait for other ranks. The default implementation does
     * nothing, for environments that report a failed rank themselves, such as Spark.
     *
     * @param reason the reason, for the messages of the other ranks
     */
    default void abort(String reason) {}

    /**
     * Closes the rendezvous for this rank. Further calls throw {@link IllegalStateException}; a call of a {@link Store} that waits
     * in another thread ends with a {@link RendezvousException}. Closing again does nothing.
     */
    @Override
    void close();
}
