package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.wire.MessageText;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The last refusal of each rank that has not joined, for the messages of the ranks that wait for it. What a refused process says
 * of itself is not proven. Confined to the thread of the loop.
 */
final class Refusals {
    /** In place of the rank of a process that has not named it. */
    static final int UNKNOWN = -1;

    /** So that a stranger can't fill the memory. */
    private static final int MAX_RANKS = 1024;

    private final TimerQueue timers;
    private final Map<Integer, Refusal> last = new HashMap<>();

    private record Refusal(String reason, long time) {}

    Refusals(TimerQueue timers) {
        this.timers = timers;
    }

    /** Adds the refusal of a process that claims a rank, with its address. */
    void add(int rank, String address, String reason) {
        if (last.size() < MAX_RANKS || last.containsKey(rank)) {
            String text = (address + "): " + reason).replaceAll("\\p{Cntrl}", "?");
            last.put(rank, new Refusal(text, timers.now()));
        }
    }

    /** Describes the refusals of some ranks, and of an unknown one; empty if there are none. */
    String describe(List<Integer> ranks) {
        List<String> all = new ArrayList<>();
        ranks.forEach(rank -> add(all, "Rank " + rank, last.get(rank)));
        add(all, "A process", last.get(UNKNOWN));
        return String.join(". ", all);
    }

    private void add(List<String> all, String who, Refusal refusal) {
        if (refusal != null) {
            all.add(who + " was refused " + MessageText.seconds(timers.now() - refusal.time) + " ago ("
                    + refusal.reason);
        }
    }
}
