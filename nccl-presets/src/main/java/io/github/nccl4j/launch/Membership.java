package io.github.nccl4j.launch;

import java.time.Duration;
import java.util.Map;

/**
 * Membership of this rank in a named group of ranks. The members are told at once if a member is lost. A communicator
 * is such a group. {@link Rendezvous#membership} enters a group.
 *
 * <p><b>Loss.</b> A member is lost if its process ends before it has closed its membership, or its connection ends in another
 * way. A member that closes its membership, or the rendezvous, leaves the group, and is not lost when its process ends.
 *
 * <p><b>Silence.</b> Members send heartbeats. A member that sends none, because its process is stopped or its host is
 * unreachable, is {@linkplain #silent silent}; by default it is not lost, since it may continue.
 *
 * <p><b>Threads.</b> All methods may be called from any thread.
 *
 * @since 0.1
 */
public interface Membership extends AutoCloseable {
    /**
     * Returns the members that are silent. Does not wait.
     *
     * @return for each silent member, by its number, the time since its last heartbeat
     */
    Map<Integer, Duration> silent();

    /**
     * Leaves the group. Returns when this process can end without being reported as lost; does not wait for other ranks. Closing
     * again does nothing.
     */
    @Override
    void close();
}
