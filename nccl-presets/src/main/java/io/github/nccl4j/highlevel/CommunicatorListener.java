package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CallCheck;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.Watchdog;
import io.github.nccl4j.internal.memory.Leaks;
import io.github.nccl4j.launch.Rendezvous;
import java.util.List;

/** Handles the events of a communicator's core and makes its exceptions. */
final class CommunicatorListener implements CommunicatorCore.Listener {
    private final Communicator communicator;

    /** Stack of the request for the communicator: a group creates the communicator at its launch. */
    private final Throwable creation = new Throwable("created here");

    private Leaks.Watch watch;

    CommunicatorListener(Communicator communicator) {
        this.communicator = communicator;
    }

    @Override
    public void opened() {
        CommunicatorCore core = communicator.core();
        Rendezvous where = core.settings().check();
        if (where != null && where.rank() == core.rank() && where.size() == core.size()) {
            core.setCheck(new CallCheck(core, where));
        }
        if (core.isOwner()) {
            if (core.settings().watchdog()) {
                Watchdog.watch(communicator.streams);
            }
            watch = Leaks.watchAlways(communicator, core.toString(), creation);
        }
    }

    @Override
    public void failed(NcclException failure) {
        communicator.policy.onFailure(communicator, failure);
    }

    @Override
    public NcclException interrupted(String message) {
        return new NcclInterruptedException(message);
    }

    @Override
    public NcclException mismatch(long number, List<String> calls) {
        return new CallMismatchException(communicator.toString(), number, calls);
    }

    /** Work that is complete now counts as complete, the rest as lost. */
    @Override
    public void stopping() {
        communicator.streams.pollPending();
    }

    @Override
    public void ended() {
        Leaks.endWatch(watch);
        try {
            communicator.streams.close();
        } finally {
            communicator.allToAllvOperations.close();
            communicator.control().close();
        }
    }
}
