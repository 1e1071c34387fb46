package io.github.nccl4j.highlevel;

import java.time.Duration;

/**
 * What is set for a communicator besides its configuration in NCCL; those made from it have the same.
 *
 * @param deadline how long is waited for other ranks
 * @param policy what is done when something has failed
 * @param watchdog whether it is looked after when nobody waits
 */
record Settings(Duration deadline, FailurePolicy policy, boolean watchdog) {
    static final Settings DEFAULT = new Settings(Communicator.DEFAULT_DEADLINE, FailurePolicy.THROW, true);

    Settings withDeadline(Duration other) {
        return new Settings(other, policy, watchdog);
    }

    Settings withPolicy(FailurePolicy other) {
        return new Settings(deadline, other, watchdog);
    }

    Settings withWatchdog(boolean other) {
        return new Settings(deadline, policy, other);
    }
}
