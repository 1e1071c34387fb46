package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** Compares what the ranks of a communicator are about to call, outside NCCL. For the thread that is in the gate. */
final class CallCheck {
    private final CommunicatorCore core;
    private final Rendezvous rendezvous;
    private long compared;

    CallCheck(CommunicatorCore core, Rendezvous rendezvous) {
        this.core = core;
        this.rendezvous = rendezvous.scope("check-" + core.identity());
    }

    /**
     * Waits for all ranks.
     *
     * @param function the C function, for exceptions
     * @param call what this rank is about to call
     */
    void compare(String function, String call) {
        core.begin();
        compared++;
        byte[] text = call.getBytes(StandardCharsets.UTF_8);
        // What is too long differs, if it does, most likely before its end.
        int length = Math.min(text.length, Rendezvous.LONGEST_VALUE);
        List<byte[]> all;
        try {
            // A key of its own: ranks that are ahead must not meet those that are behind.
            all = rendezvous.gather(Long.toString(compared), Arrays.copyOf(text, length), core.deadline());
        } catch (RendezvousException e) {
            throw failure(e, function, call);
        }
        List<String> calls = all.stream()
                .map(each -> new String(each, StandardCharsets.UTF_8))
                .toList();
        if (!calls.stream().allMatch(calls.get(0)::equals)) {
            throw new CallMismatchException(core.toString(), compared, calls);
        }
    }

    private RuntimeException failure(RendezvousException e, String function, String call) {
        if (Thread.currentThread().isInterrupted()) {
            return core.failures().interrupted(call);
        }
        String number = "collective call " + compared;
        if (e instanceof RendezvousTimeoutException late && !late.missing().isEmpty()) {
            String missing = late.missing().stream().map(Object::toString).collect(Collectors.joining(", "));
            String who = (late.missing().size() == 1 ? "rank " + missing + " has" : "ranks " + missing + " have")
                    + " not come to " + number;
            return core.failures().late(function, call + " (" + number + "; " + who + ")", core.deadline(), e);
        }
        return core.failures().peerLost(function, call + " (" + number + "; " + e.getMessage() + ")", e);
    }
}
