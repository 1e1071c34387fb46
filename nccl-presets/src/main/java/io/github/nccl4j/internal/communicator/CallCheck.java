package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** Compares the next call of all ranks of a communicator, without NCCL. For the thread that holds the gate. */
public final class CallCheck implements CommunicatorCore.Comparison {
    private final CommunicatorCore core;
    private final Rendezvous rendezvous;
    private long compared;

    public CallCheck(CommunicatorCore core, Rendezvous rendezvous) {
        this.core = core;
        this.rendezvous = rendezvous.scope("check-" + core.identity());
    }

    /**
     * Waits for all ranks and compares their calls.
     *
     * @param function the C function, for exceptions
     * @param call the call that this rank is about to make
     */
    @Override
    public void compare(String function, String call) {
        core.calls().begin();
        compared++;
        byte[] text = call.getBytes(StandardCharsets.UTF_8);
        // Keeps the beginning of a long text, where a difference is most likely.
        int length = Math.min(text.length, Rendezvous.LONGEST_VALUE);
        List<byte[]> all;
        try {
            // A key per call: ranks that are ahead must not meet ranks that are behind.
            all = rendezvous.gather(Long.toString(compared), Arrays.copyOf(text, length), core.deadline());
        } catch (RendezvousException e) {
            throw failure(e, function, call);
        }
        List<String> calls = all.stream()
                .map(each -> new String(each, StandardCharsets.UTF_8))
                .toList();
        if (!calls.stream().allMatch(calls.get(0)::equals)) {
            throw core.listener().mismatch(compared, calls);
        }
    }

    private RuntimeException failure(RendezvousException e, String function, String call) {
        if (Thread.currentThread().isInterrupted()) {
            return core.failures().interrupted(call);
        }
        String number = "collective call " + compared;
        if (e instanceof RendezvousTimeoutException late && !late.missing().isEmpty()) {
            String missing = late.missing().stream().map(Object::toString).collect(Collectors.joining(", "));
            String missingRanks =
                    (late.missing().size() == 1 ? "rank " + missing + " has" : "ranks " + missing + " have")
                            + " not reached " + number;
            return core.failures()
                    .storeTimedOut(function, call + " (" + number + "; " + missingRanks + ")", core.deadline(), e);
        }
        return core.failures().storeLostRank(function, call + " (" + number + "; " + e.getMessage() + ")", e);
    }
}
