package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.launch.Rendezvous;
import java.time.Duration;

/**
 * Settings of a communicator besides NCCL's configuration; communicators derived from it inherit them.
 *
 * @param deadline the time to wait for other ranks
 * @param watchdog true if the watchdog is enabled
 * @param recorded the number of operations that the flight recorder keeps
 * @param check the rendezvous at which calls are compared, or null
 * @param rendezvous the rendezvous at which the ranks met, or null
 */
public record CommunicatorSettings(
        Duration deadline, boolean watchdog, int recorded, Rendezvous check, Rendezvous rendezvous) {
    /** Default number of operations that the flight recorder keeps. */
    public static final int DEFAULT_RECORDED = 255;

    public static final CommunicatorSettings DEFAULT =
            new CommunicatorSettings(Duration.ofMinutes(5), true, DEFAULT_RECORDED, null, null);

    public CommunicatorSettings withDeadline(Duration other) {
        return new CommunicatorSettings(other, watchdog, recorded, check, rendezvous);
    }

    public CommunicatorSettings withWatchdog(boolean other) {
        return new CommunicatorSettings(deadline, other, recorded, check, rendezvous);
    }

    public CommunicatorSettings withRecorded(int other) {
        return new CommunicatorSettings(deadline, watchdog, other, check, rendezvous);
    }

    public CommunicatorSettings withCheck(Rendezvous other) {
        return new CommunicatorSettings(deadline, watchdog, recorded, other, rendezvous);
    }

    public CommunicatorSettings withRendezvous(Rendezvous other) {
        return new CommunicatorSettings(deadline, watchdog, recorded, check, other);
    }

    /** Requires that the rendezvous that compares calls has the same rank numbers. */
    public void requireChecked(int rank, int ranksHere, int size) {
        if (check == null) {
            return;
        }
        if (ranksHere > 1) {
            throw new IllegalArgumentException("with check(), a process must create one rank: " + ranksHere);
        }
        if (check.rank() != rank || check.size() != size) {
            throw new IllegalArgumentException("rank and size must be those of the rendezvous of check(): rank " + rank
                    + " of " + size + ", the rendezvous has rank " + check.rank() + " of " + check.size());
        }
    }
}
