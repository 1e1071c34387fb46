package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.Collection;
import java.util.List;

/**
 * A rendezvous that also has keys with values, and that knows which process of each rank is connected. {@code Recovery} needs one.
 *
 * <pre>{@code
 * try (Store store = TcpStore.open(RankInfo.fromEnvironment())) {
 *     store.set("loaded-" + store.rank(), new byte[0]);
 *     store.await(List.of("loaded-0", "loaded-1"), Duration.ofSeconds(60));
 * }
 * }</pre>
 *
 * <p><b>Keys.</b> A key is any text without a slash, of 1 to 1024 bytes in UTF-8. It keeps its value until it is deleted or the
 * store ends, also if the rank that has set it is lost. Calls with keys are not collective. A call sees the values that were set
 * before it began. Arguments are checked before anything is sent. Values are copied: a caller may change an array that it has
 * passed or got.
 *
 * <p><b>Waiting.</b> A timeout of zero asks for what is set already. After a call that was interrupted or not in time, the store
 * can be used further.
 *
 * <p><b>Processes of a rank.</b> A process that joins as a rank that is lost, or that has closed its store, takes its place: it is
 * the next attempt of that rank. Collective calls of the store then fail, because they need the first process of each rank;
 * {@link #among} names others.
 *
 * <p><b>Implementations.</b> {@link TcpStore}, and {@code ZooKeeperStore} of the artifact {@code nccl-zookeeper}.
 *
 * @since 0.1
 */
public interface Store extends Rendezvous {
    /**
     * Returns a rendezvous of some of the ranks, with keys of its own, as {@link #scope}; for example, for a communicator of the
     * ranks that survive a failure, some of which have come back. Calls of the scope need these processes: they fail at once if
     * one of them has ended, also if another process has taken its place. Not collective; the ranks must pass the same name
     * and the same lists.
     *
     * @param name the name of the scope; not empty, without a slash
     * @param ranks distinct ranks of this store, including this rank; a rank's index is its rank in the scope
     * @param attempts the {@link #attempt} of the process of each of these ranks
     * @return a view; closing it does nothing
     * @throws IllegalArgumentException if the name can't be used, a rank is out of range, the ranks are not distinct, or they do
     *     not include this rank; or if the lists differ in length, or the attempt of this rank is another one
     */
    Rendezvous among(String name, List<Integer> ranks, List<Integer> attempts);

    /**
     * Sets the value of a key, or replaces it. Calls that wait for the key return.
     *
     * @param key the key; not empty, without a slash, at most 1024 bytes
     * @param value the value, at most {@value Rendezvous#LONGEST_VALUE} bytes
     * @throws IllegalArgumentException if the key or the value can't be used
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if the store is full, a rank has aborted, the connection is lost, or this thread is interrupted
     */
    void set(String key, byte[] value);

    /**
     * Waits until a key has a value. A call that waits for longer than 10 seconds logs the key.
     *
     * @param key the key; not empty, without a slash, at most 1024 bytes
     * @param timeout the time to wait
     * @return the value
     * @throws IllegalArgumentException if the key can't be used, or the timeout is negative
     * @throws RendezvousTimeoutException if the key is not set in time; the message names the key and the timeout
     * @throws RendezvousException if a rank has aborted, the connection is lost, or this thread is interrupted
     */
    byte[] get(String key, Duration timeout);

    /**
     * Waits until all given keys have values. A call that waits for longer than 10 seconds logs for which keys.
     *
     * @param keys the keys, each as for {@link #get}; without keys, the call returns at once
     * @param timeout the time to wait for all keys together
     * @throws IllegalArgumentException if a key can't be used, or the timeout is negative
     * @throws RendezvousTimeoutException if a key is not set in time; the message names the key and the timeout
     * @throws RendezvousException if a rank has aborted, the connection is lost, or this thread is interrupted
     */
    void await(Collection<String> keys, Duration timeout);

    /**
     * Adds a number to the value of a key, atomically. A key without a value counts as 0. The value is the number in decimal
     * digits, in ASCII, of at most 20 bytes. Calls that wait for the key return.
     *
     * @param key the key; not empty, without a slash, at most 1024 bytes
     * @param delta the number to add
     * @return the sum
     * @throws IllegalArgumentException if the key can't be used
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if the value is not a number, the sum exceeds 64 bits, the store is full, a rank has aborted,
     *     the connection is lost, or this thread is interrupted
     */
    long add(String key, long delta);

    /**
     * Deletes a key and its value, also after a rank has aborted.
     *
     * @param key the key; not empty, without a slash, at most 1024 bytes
     * @return true if the key had a value
     * @throws IllegalArgumentException if the key can't be used
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if the connection is lost, or this thread is interrupted
     */
    boolean delete(String key);

    /**
     * Returns the number of earlier processes of this rank.
     *
     * @return 0 for the first process of this rank
     */
    int attempt();

    /**
     * Returns which processes are connected. Not collective.
     *
     * @return by rank the {@link #attempt} of its process, or -1 if the process is lost or has closed its store; 0 also for a
     *     rank that has never joined
     * @throws RendezvousTimeoutException if the store does not respond in time
     * @throws RendezvousException if the connection is lost, or this thread is interrupted
     */
    List<Integer> attempts();
}
