package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NcclException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** What has gone wrong in a communicator: the exceptions for it, who is told, and which work may never end. */
final class Failures {
    private final CommunicatorCore core;

    /** How often something went wrong that may leave work on the device for ever. Guarded by the core, as its state is. */
    private int stalls;

    /** Work that was not done in time, and not seen to be done since. Guarded by the core. */
    private final List<Work> late = new ArrayList<>();

    Failures(CommunicatorCore core) {
        this.core = core;
    }

    /** The exception for an error, after the policy was asked. */
    RuntimeException failed(int result, String function, String description) {
        NcclResultException failure = Status.failure(
                result, function, description, core.expectedRank(), core.name(), core.lastError(), core.library());
        if (core.hasEnded()) {
            // Another thread has aborted it during the call, which is all there is to say.
            IllegalStateException aborted = core.notOpen();
            aborted.addSuppressed(failure);
            return aborted;
        }
        if (!(failure instanceof NcclUsageException)) {
            stalled();
            tellPolicy(failure);
        }
        return failure;
    }

    /** The exception for what was not done in time, after the policy was asked. */
    NcclException timedOut(String function, String description, Duration limit) {
        NcclException failure = timeout(function, description, limit);
        stalled();
        tellPolicy(failure);
        return failure;
    }

    /** As {@link #timedOut}, of work, which {@link #isLate} knows of. */
    NcclException late(String function, String description, Duration limit) {
        NcclException failure = timeout(function, description, limit);
        tellPolicy(failure);
        return failure;
    }

    private NcclException timeout(String function, String description, Duration limit) {
        return Status.timeout(
                function, description, limit, core.expectedRank(), core.name(), core.lastError(), core.library());
    }

    private boolean stalled() {
        synchronized (core) {
            if (core.hasEnded() || !core.device().isCuda()) {
                return false;
            }
            stalls++;
            Stall.begin(core);
            return true;
        }
    }

    /** Work was not done in time, and is to be asked again. */
    void isLate(Work work) {
        synchronized (core) {
            if (stalled()) {
                late.add(work);
            }
        }
    }

    /** What was not done in time is done now, or was known to be. */
    void noLongerLate(Work work) {
        synchronized (core) {
            if (!late.remove(work) || --stalls > 0) {
                return;
            }
        }
        Stall.end(core);
    }

    /** Whether the device may never be done with what it was told; asks again for what was late. */
    boolean isStalled() {
        List<Work> asked;
        synchronized (core) {
            asked = new ArrayList<>(late);
        }
        for (Work work : asked) {
            try {
                work.isDone();
            } catch (RuntimeException failed) {
                // It stays late.
                continue;
            }
        }
        synchronized (core) {
            return stalls > 0;
        }
    }

    private void tellPolicy(NcclException failure) {
        try {
            core.policy().onFailure(core.communicator(), failure);
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }
}
