package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * What a number of ranks tell each other outside NCCL: before there is a communicator, or about one.
 *
 * <pre>{@code
 * byte[] id = rendezvous.broadcast("id", 0, () -> UniqueId.create().toBytes(), Rendezvous.DEFAULT_TIMEOUT);
 * List<byte[]> hosts = rendezvous.gather("host", host.getBytes(StandardCharsets.UTF_8), Duration.ofSeconds(60));
 * rendezvous.barrier("start", Duration.ofSeconds(60));
 * }</pre>
 *
 * <p><b>Collective.</b> {@link #gather}, {@link #broadcast} and {@link #barrier} are called by every rank with the same key.
 * They are matched by their keys, not by their order. A key can be used again when all ranks have returned from its last
 * use.
 *
 * <p><b>Failure.</b> Nothing waits for ever: a call ends at its timeout with a {@link RendezvousTimeoutException} that names
 * the ranks that did not come, and every other rank that waits for the same, or comes to it later, gets the same
 * exception. When a rank is lost, or calls {@link #abort}, the calls that need it end at once.
 *
 * <p><b>Threads.</b> All methods may be called from any thread, and several may wait at the same time. A thread that is
 * interrupted while it waits gets a {@link RendezvousException} and keeps its interrupt status.
 *
 * <p>Whoever runs ranks in an environment that has a way of its own to exchange bytes (an MPI library, Spark's barrier
 * tasks) implements {@link #rank}, {@link #size}, {@link #gather} and {@link #close}; the rest follows. Values are small: up
 * to {@value #LONGEST_VALUE} bytes.
 */
public interface Rendezvous extends AutoCloseable {
    /** How long ranks wait for each other where nothing else is said: 5 minutes. */
    Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

    /** The most bytes that a value may have. */
    int LONGEST_VALUE = 1 << 16;

    /** {@return this rank, from 0} */
    int rank();

    /** {@return the number of ranks} */
    int size();

    /**
     * Gives every rank the values of all. Collective.
     *
     * @param key names what is gathered; not empty, without a slash
     * @param value this rank's value, at most {@value #LONGEST_VALUE} bytes, possibly none
     * @param timeout how long to wait for the other ranks
     * @return the values by rank
     * @throws IllegalArgumentException if the value is too long, the key can't be used, or the timeout is negative
     * @throws RendezvousTimeoutException if not all ranks came in time
     * @throws RendezvousException if a rank is lost or has aborted, or this thread is interrupted
     */
    List<byte[]> gather(String key, byte[] value, Duration timeout);

    /**
     * Gives every rank the value of one. Collective; the root may return before the others have come.
     *
     * <p>If the supplier throws at the root, the others get a {@link RendezvousException} with its message.
     *
     * @param key names what is broadcast; not empty, without a slash
     * @param root the rank whose value it is
     * @param value makes the value, less than {@value #LONGEST_VALUE} bytes; called at the root alone
     * @param timeout how long to wait for the root
     * @return the value
     * @throws IllegalArgumentException if the value is too long, the key can't be used, the timeout is negative, or the root is no
     *     rank
     * @throws RendezvousTimeoutException if the root did not come in time
     * @throws RendezvousException if the root failed, is lost or has aborted, or this thread is interrupted
     */
    default byte[] broadcast(String key, int root, Supplier<byte[]> value, Duration timeout) {
        BroadcastMessage.requireRoot(root, size());
        if (rank() != root) {
            return BroadcastMessage.decode(gather(key, new byte[0], timeout).get(root), root);
        }
        return BroadcastMessage.send(value, message -> gather(key, message, timeout));
    }

    /**
     * Returns when all ranks have called it. Collective.
     *
     * @param key names the barrier; not empty, without a slash
     * @param timeout how long to wait for the other ranks
     * @throws IllegalArgumentException if the key can't be used, or the timeout is negative
     * @throws RendezvousTimeoutException if not all ranks came in time
     * @throws RendezvousException if a rank is lost or has aborted, or this thread is interrupted
     */
    default void barrier(String key, Duration timeout) {
        gather(key, new byte[0], timeout);
    }

    /**
     * Finds this rank's number on its host, and how many ranks are there, where its launcher did not tell. Collective if
     * {@link RankInfo#hasLocalRank} is false; otherwise the rank is returned as it is. {@link TcpStore} accepts only ranks
     * for all of which it is true, or for none.
     *
     * <p>Ranks are on one host if they have the same host name and the same boot of the kernel, or the same value of
     * {@code NCCL_HOSTID}: as NCCL has it, a container with a host name of its own is a host. Local ranks follow the order
     * of the ranks.
     *
     * @param self this rank
     * @param timeout how long to wait for the other ranks
     * @return this rank, with its local rank and the number of ranks on its host
     * @throws IllegalArgumentException if {@code self} is not this rank of this rendezvous
     * @throws RendezvousTimeoutException if not all ranks came in time
     * @throws RendezvousException if a rank was told something else of its host than is found, a rank is lost or has
     *     aborted, or this thread is interrupted
     */
    default RankInfo locate(RankInfo self, Duration timeout) {
        return LocalRanks.find(this, self, timeout);
    }

    /**
     * The same ranks with keys of their own: what is called there never meets what is called here, or in a scope of another
     * name. Not collective.
     *
     * @param name names the scope; not empty, without a slash, the same for all ranks
     * @return a view, which needs no closing; closing it does nothing
     */
    default Rendezvous scope(String name) {
        return new Scope(this, Arguments.scopePrefix("", name));
    }

    /**
     * Answers the other ranks when they ask, whatever this rank's threads wait for, and can ask them. Not collective, but
     * ranks that have not called it do not answer.
     *
     * @param topic names what is asked; not empty, without a slash; not that of an inquiry that is open here
     * @param answer makes this rank's answer, a short one: 64 KiB are shared by all ranks, and what is longer is cut off;
     *     called by a thread of this package, and must not wait
     * @return the inquiry, to be closed by the caller; empty where ranks can't be asked, as here, unless it is a {@link
     *     TcpStore} of not more than 4096 ranks
     * @throws IllegalArgumentException if the topic can't be used, or has an open inquiry
     * @throws IllegalStateException if this is closed
     */
    default Optional<Inquiry> inquiry(String topic, Supplier<byte[]> answer) {
        return Optional.empty();
    }

    /**
     * Tells the other ranks that this one can't go on. Calls that wait for it end with a {@link RendezvousException} that
     * gives the reason. Does not wait. Where the environment itself tells the others, as Spark does, there is nothing to do,
     * and this does nothing.
     *
     * @param reason what happened, for the messages of the others
     */
    default void abort(String reason) {}

    /** Ends this rank's part. Further calls are an {@link IllegalStateException}. Closing again does nothing. */
    @Override
    void close();
}
