package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Rendezvous;
import java.time.Duration;

/**
 * Settings of a communicator besides NCCL's configuration; communicators derived from it inherit them.
 *
 * @param deadline the time to wait for other ranks
 * @param policy what to do after a failure
 * @param watchdog true if the watchdog is enabled
 * @param recorded the number of operations that the flight recorder keeps
 * @param check the rendezvous at which calls are compared, or null
 * @param meeting the rendezvous at which the ranks met, or null
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
