package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Rendezvous;
import java.time.Duration;

/**
 * What is set for a communicator besides its configuration in NCCL; those made from it have the same.
 *
 * @param deadline how long is waited for other ranks
 * @param policy what is done when something has failed
 * @param watchdog whether it is looked after when nobody waits
 * @param recorded how many operations are kept
 * @param check where calls are compared, or null
 * @param meeting where the ranks have met, or null
 */
record Settings(
        Duration deadline, FailurePolicy policy, boolean watchdog, int recorded, Rendezvous check, Rendezvous meeting) {
    static final Settings DEFAULT = new Settings(
            Communicator.DEFAULT_DEADLINE, FailurePolicy.THROW, true, FlightRecorder.DEFAULT_KEPT, null, null);

    Settings withDeadline(Duration other) {
        return new Settings(other, policy, watchdog, recorded, check, meeting);
    }

    Settings withPolicy(FailurePolicy other) {
        return new Settings(deadline, other, watchdog, recorded, check, meeting);
    }

    Settings withWatchdog(boolean other) {
        return new Settings(deadline, policy, other, recorded, check, meeting);
    }

    Settings withRecorded(int other) {
        return new Settings(deadline, policy, watchdog, other, check, meeting);
    }

    Settings withCheck(Rendezvous other) {
        return new Settings(deadline, policy, watchdog, recorded, other, meeting);
    }

    Settings withMeeting(Rendezvous other) {
        return new Settings(deadline, policy, watchdog, recorded, check, other);
    }
}
