package io.github.nccl4j.internal.log;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Communicators of this process by their handles, by which NCCL's log names them. Some ended communicators are kept,
 * because the log is read later than it is written.
 */
public final class KnownCommunicators {
    private static final int ENDED_KEPT = 64;

    private static final Map<Long, Member> OPEN = new LinkedHashMap<>();
    private static final Map<Long, Member> ENDED = new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Member> eldest) {
            return size() > ENDED_KEPT;
        }
    };

    private KnownCommunicators() {}

    /**
     * A rank of this process.
     *
     * @param rank its rank
     * @param name the communicator's name, or empty
     * @param device the number of its CUDA device, or -1
     */
    public record Member(int rank, String name, int device) {}

    public static synchronized void add(long handle, Member member) {
        // NCCL may reuse the address of an ended communicator.
        ENDED.remove(handle);
        OPEN.put(handle, member);
    }

    public static synchronized void remove(long handle) {
        Member member = OPEN.remove(handle);
        if (member != null) {
            ENDED.put(handle, member);
        }
    }

    public static synchronized Optional<Member> of(long handle) {
        return Optional.ofNullable(OPEN.getOrDefault(handle, ENDED.get(handle)));
    }

    /**
     * Returns the only communicator on a device; empty if there are several, because the log does not tell them apart.
     */
    static synchronized Optional<Member> onlyOneOn(int device) {
        List<Member> there = on(device, OPEN.values());
        if (there.isEmpty()) {
            there = on(device, ENDED.values());
        }
        return there.size() == 1 ? Optional.of(there.get(0)) : Optional.empty();
    }

    private static List<Member> on(int device, Collection<Member> members) {
        List<Member> there = new ArrayList<>(members);
        there.removeIf(member -> member.device() != device);
        return there;
    }
}
