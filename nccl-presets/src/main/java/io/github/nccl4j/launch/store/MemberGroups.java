package io.github.nccl4j.launch.store;

import io.github.nccl4j.launch.wire.Notice;
import io.github.nccl4j.launch.wire.Notice.Kind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The groups of a job, on the server: the members of each group, and the notices to members about other members. A
 * group exists while it has a member. Confined to the thread of the loop.
 */
final class MemberGroups {
    /** Limit for the groups of one rank, so that no rank exhausts the memory of the store. */
    static final int MAX_GROUPS = 1 << 12;

    /** A connection of a rank, which receives notices. */
    interface Member {
        /** The address and process of the rank. */
        String process();

        /** True if the store is in the process of the rank. */
        boolean isKeeper();

        void send(Notice notice);
    }

    private static final class Group {
        private final Map<Member, Integer> members = new LinkedHashMap<>();
        /** Sent to each member that enters later. */
        private final List<Notice> history = new ArrayList<>();
    }

    private final Map<String, Group> groups = new HashMap<>();
    private final Map<Member, Map<String, Integer>> entered = new HashMap<>();

    /** Enters a rank; returns null, or the reason for a refusal. */
    String enter(Member member, String name, int number) {
        Map<String, Integer> own = entered.computeIfAbsent(member, first -> new HashMap<>());
        if (own.size() >= MAX_GROUPS) {
            return "a rank must be a member of <= " + MAX_GROUPS + " groups: " + (own.size() + 1);
        }
        own.put(name, number);
        Group group = groups.computeIfAbsent(name, first -> new Group());
        group.history.forEach(member::send);
        if (member.isKeeper()) {
            publish(group, member, new Notice(Kind.KEEPER, name, number, member.process(), "", 0));
        }
        group.members.put(member, number);
        return null;
    }

    void exit(Member member, String name) {
        Map<String, Integer> own = entered.get(member);
        if (own != null && own.remove(name) != null) {
            remove(member, name);
            if (own.isEmpty()) {
                entered.remove(member);
            }
        }
    }

    private void remove(Member member, String name) {
        Group group = groups.get(name);
        group.members.remove(member);
        if (group.members.isEmpty()) {
            groups.remove(name);
        }
    }

    boolean isMember(Member member) {
        return entered.containsKey(member);
    }

    /** Removes a rank from all its groups, without a notice. */
    void leave(Member member) {
        Map<String, Integer> own = entered.remove(member);
        if (own != null) {
            own.keySet().forEach(name -> remove(member, name));
        }
    }

    /** Removes a rank that is lost from all its groups, and tells the other members. */
    void markLost(Member member, String reason) {
        Map<String, Integer> own = entered.remove(member);
        if (own == null) {
            return;
        }
        own.forEach((name, number) -> {
            Group group = groups.get(name);
            group.members.remove(member);
            if (group.members.isEmpty()) {
                groups.remove(name);
            } else {
                publish(group, member, new Notice(Kind.LOST, name, number, member.process(), reason, 0));
            }
        });
    }

    /** Tells the other members that a rank is silent. */
    void markSilent(Member member, long nanos) {
        tellOthers(member, Kind.SILENT, nanos);
    }

    /** Tells the other members that a rank is no longer silent. */
    void markHeard(Member member) {
        tellOthers(member, Kind.HEARD, 0);
    }

    private void tellOthers(Member member, Kind kind, long nanos) {
        entered.getOrDefault(member, Map.of())
                .forEach((name, number) ->
                        send(groups.get(name), member, new Notice(kind, name, number, member.process(), "", nanos)));
    }

    private static void publish(Group group, Member about, Notice notice) {
        group.history.add(notice);
        send(group, about, notice);
    }

    private static void send(Group group, Member about, Notice notice) {
        // A copy: a connection that can't be written to ends, and leaves the group.
        for (Member other : new ArrayList<>(group.members.keySet())) {
            if (other != about) {
                other.send(notice);
            }
        }
    }
}
