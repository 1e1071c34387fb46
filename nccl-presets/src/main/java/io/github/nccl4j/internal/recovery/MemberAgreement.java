package io.github.nccl4j.internal.recovery;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.Store;
import io.github.nccl4j.launch.wire.Counter;
import io.github.nccl4j.launch.wire.MessageText;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Agreement of processes on the members of a {@link Recovery}, in numbered rounds, through keys of the store.
 *
 * <p>In each round every member sets a key that says that it is alive. The first process that sees the keys of all members, or whose
 * patience ends, decides for all of them: the next members are those that are alive, and the processes that wait in the places of
 * missing ranks. The decision alone changes the members, whether or not their communicator can be created: all of them take part
 * in the next round.
 *
 * <p>No process waits for the one that decides, which may end or be stopped at any moment: each sets its proposal, and then an atomic
 * addition to a counter chooses the first one, whose proposal is the decision from then on.
 */
public final class MemberAgreement {
    private static final Duration SLICE = Duration.ofMillis(100);
    private static final Duration ADMISSION_SLICE = Duration.ofSeconds(1);
    private static final String NONE = "-";

    /** The processes that decide one after another, each a slice later, before all others do. */
    private static final int TURNS = 10;

    private final Store store;
    private final String name;
    private final Member self;

    public MemberAgreement(Store store, String name) {
        this.store = store;
        this.name = name;
        self = new Member(store.rank(), store.attempt());
    }

    /** A process: its rank at the store, and the number of earlier processes of this rank. */
    public record Member(int rank, int attempt) {
        private static Member of(String text) {
            String[] parts = text.split("-");
            return new Member(Integer.parseInt(parts[0]), parts.length == 1 ? 0 : Integer.parseInt(parts[1]));
        }

        private boolean isConnected(List<Integer> attempts) {
            return attempts.get(rank) == attempt;
        }

        @Override
        public String toString() {
            return attempt == 0 ? "" + rank : rank + "-" + attempt;
        }
    }

    /** The ways to change a communicator that a process, or a round, can use; each includes those before it. */
    public enum Means {
        CREATE,
        SHRINK,
        GROW
    }

    /** Decision on which the members have agreed. The order of the members is that of their ranks in the communicator. */
    public record Decision(Means means, List<Member> survivors, List<Member> admitted) {
        public List<Member> members() {
            List<Member> all = new ArrayList<>(survivors);
            all.addAll(admitted);
            return List.copyOf(all);
        }

        private byte[] bytes() {
            return (means + " " + text(survivors) + " " + text(admitted)).getBytes(StandardCharsets.UTF_8);
        }

        private static Decision of(byte[] bytes) {
            String[] parts = new String(bytes, StandardCharsets.UTF_8).split(" ");
            return new Decision(Means.valueOf(parts[0]), parse(parts[1]), parse(parts[2]));
        }
    }

    private static String text(List<Member> members) {
        return members.isEmpty() ? NONE : members.stream().map(Member::toString).collect(Collectors.joining(","));
    }

    private static List<Member> parse(String text) {
        return text.equals(NONE)
                ? List.of()
                : Arrays.stream(text.split(",")).map(Member::of).toList();
    }

    public Member self() {
        return self;
    }

    /** The first process of every rank. */
    public List<Member> original() {
        return IntStream.range(0, store.size())
                .mapToObj(rank -> new Member(rank, 0))
                .toList();
    }

    /** Returns a rendezvous of the members of a round; its calls fail as soon as one of them has ended. */
    public Rendezvous scope(int round, String what, List<Member> members) {
        return store.among(
                key(round, what),
                members.stream().map(Member::rank).toList(),
                members.stream().map(Member::attempt).toList());
    }

    private String key(int round, String what) {
        return name + "-" + round + "-" + what;
    }

    private String alive(int round, Member member) {
        return key(round, "alive-" + member);
    }

    private String decider(int round) {
        return key(round, "decider");
    }

    private String proposal(int round, int rank) {
        return key(round, "proposal-" + rank);
    }

    private String waiting(Member member) {
        return name + "-waits-" + member;
    }

    private String admitted(Member member) {
        return name + "-admitted-" + member;
    }

    private String current() {
        return name + "-members";
    }

    /**
     * Agrees with the other members. The first process that sees all of them, or whose wait times out, decides for all.
     *
     * @param able the way in which this process can change its communicator
     * @param admit true if this process, should it decide, admits those that wait
     */
    public Decision agree(int round, List<Member> members, Means able, boolean admit, Duration patience, long limit) {
        if (round > 1) {
            // The decision of that round stays: a late process must find it.
            store.delete(alive(round - 1, self));
        }
        store.set(alive(round, self), new byte[] {(byte) able.ordinal()});
        long start = System.nanoTime();
        while (!allReady(round, members) && find(decider(round)) == null && System.nanoTime() - start <= limit) {
            // allReady() has waited a little.
            continue;
        }
        if (find(decider(round), turn(members)) == null) {
            propose(round, members, admit);
        }
        Decision decision = decision(round, patience);
        // By every member: the process that has decided may end before it has told those that wait.
        for (Member member : decision.admitted) {
            // A member that is left out later, because it is stopped, must not look like one that waits.
            store.delete(waiting(member));
            store.set(admitted(member), Integer.toString(round).getBytes(StandardCharsets.UTF_8));
        }
        store.set(current(), text(decision.members()).getBytes(StandardCharsets.UTF_8));
        return decision;
    }

    /** The time for which this process lets earlier ones decide, so that few make proposals. */
    private Duration turn(List<Member> members) {
        List<Integer> attempts = store.attempts();
        long earlier = members.stream()
                .takeWhile(member -> !member.equals(self))
                .filter(member -> member.isConnected(attempts))
                .count();
        return SLICE.multipliedBy(Math.min(earlier, TURNS));
    }

    /** Makes a proposal, which is the decision unless there is one. */
    private void propose(int round, List<Member> members, boolean admit) {
        String own = proposal(round, self.rank);
        store.set(own, decide(round, members, admit).bytes());
        try {
            // The store refuses a second addition, because the sum exceeds 64 bits.
            store.add(decider(round), Long.MAX_VALUE - self.rank);
        } catch (RendezvousException refused) {
            if (find(decider(round)) == null) {
                throw refused;
            }
        }
        if (chosen(round, Duration.ZERO) != self.rank) {
            store.delete(own);
        }
    }

    /** Returns the rank that decides a round. */
    private int chosen(int round, Duration limit) {
        return (int) (Long.MAX_VALUE - Counter.decode(store.get(decider(round), limit)));
    }

    private boolean allReady(int round, List<Member> members) {
        List<Integer> attempts = store.attempts();
        List<String> keys = members.stream()
                .filter(member -> member.isConnected(attempts))
                .map(member -> alive(round, member))
                .toList();
        try {
            store.await(keys, SLICE);
            return true;
        } catch (RendezvousTimeoutException notYet) {
            return false;
        }
    }

    /** Returns the current value of a key, or null. */
    private byte[] find(String key) {
        return find(key, Duration.ZERO);
    }

    /** Returns the value of a key as soon as it has one, or null. */
    private byte[] find(String key, Duration limit) {
        try {
            return store.get(key, limit);
        } catch (RendezvousTimeoutException none) {
            return null;
        }
    }

    private Decision decide(int round, List<Member> members, boolean admit) {
        List<Integer> attempts = store.attempts();
        List<Member> survivors = new ArrayList<>();
        Means able = Means.GROW;
        for (Member member : members) {
            byte[] sign = member.isConnected(attempts) ? find(alive(round, member)) : null;
            if (sign != null) {
                survivors.add(member);
                able = least(able, Means.values()[sign[0]]);
            }
        }
        List<Member> admitted = new ArrayList<>();
        for (Member member : admit ? candidates(survivors, attempts) : List.<Member>of()) {
            byte[] sign = find(waiting(member));
            if (sign != null) {
                admitted.add(member);
                able = least(able, Means.values()[sign[0]]);
            }
        }
        boolean hasLost = survivors.size() < members.size();
        boolean canShrink = hasLost && admitted.isEmpty() && able != Means.CREATE;
        boolean canGrow = !hasLost && !admitted.isEmpty() && able == Means.GROW;
        return new Decision(canShrink ? Means.SHRINK : canGrow ? Means.GROW : Means.CREATE, survivors, admitted);
    }

    private static Means least(Means one, Means other) {
        return one.compareTo(other) < 0 ? one : other;
    }

    /** The connected processes that have taken the place of another one, and are no members. */
    private List<Member> candidates(List<Member> members, List<Integer> attempts) {
        return IntStream.range(0, store.size())
                .filter(rank -> attempts.get(rank) > 0)
                .filter(rank -> members.stream().noneMatch(member -> member.rank == rank))
                .mapToObj(rank -> new Member(rank, attempts.get(rank)))
                .toList();
    }

    /** True if a process waits in the place of a missing rank. */
    public boolean isAnyWaiting(List<Member> members) {
        return candidates(members, store.attempts()).stream().anyMatch(member -> find(waiting(member)) != null);
    }

    /**
     * Waits until the members admit this process, and returns the number of the round.
     *
     * @param limit the time to wait, and its nanoseconds
     * @throws RendezvousException if there is no member left, or the time is over
     */
    public int awaitAdmission(Means able, Duration limit, long nanoseconds) {
        store.set(waiting(self), new byte[] {(byte) able.ordinal()});
        long start = System.nanoTime();
        boolean done = false;
        try {
            while (true) {
                byte[] round = find(admitted(self), ADMISSION_SLICE);
                if (round != null) {
                    done = true;
                    return Integer.parseInt(new String(round, StandardCharsets.UTF_8));
                }
                requireMembers();
                if (System.nanoTime() - start > nanoseconds) {
                    throw new RendezvousTimeoutException(
                            "rank " + self.rank + ", attempt " + self.attempt + ", was not admitted to '" + name
                                    + "' within " + MessageText.seconds(nanoseconds)
                                    + ": its ranks must call Recovery.admit between two steps",
                            List.of());
                }
            }
        } finally {
            if (!done) {
                withdraw();
            }
        }
    }

    private void withdraw() {
        try {
            store.delete(waiting(self));
        } catch (RendezvousException | IllegalStateException unreachable) {
            // Without a connection, this process is no candidate.
        }
    }

    private void requireMembers() {
        byte[] told = find(current());
        List<Member> members = told == null ? original() : parse(new String(told, StandardCharsets.UTF_8));
        List<Integer> attempts = store.attempts();
        if (members.stream().noneMatch(member -> member.isConnected(attempts))) {
            throw new RendezvousException("rank " + self.rank + ", attempt " + self.attempt + ", can't be admitted to '"
                    + name + "': all its members have ended, "
                    + MessageText.ranks(members.stream().map(Member::rank).toList()));
        }
    }

    /** Returns the decision of a round that is over. */
    public Decision decision(int round, Duration limit) {
        return Decision.of(store.get(proposal(round, chosen(round, limit)), limit));
    }

    /** True if the process of a member has ended; waits a moment for the store to notice that. */
    public boolean isAnyLost(List<Member> members, Duration limit) {
        long start = System.nanoTime();
        while (true) {
            List<Integer> attempts = store.attempts();
            if (members.stream().anyMatch(member -> !member.isConnected(attempts))) {
                return true;
            }
            if (System.nanoTime() - start > limit.toNanos()) {
                return false;
            }
            try {
                Thread.sleep(SLICE.toMillis() / 10);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return false;
            }
        }
    }
}
