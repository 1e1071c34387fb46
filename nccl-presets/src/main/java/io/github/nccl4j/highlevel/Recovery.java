package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.NcclException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A communicator that recovers from the loss of ranks.
 *
 * <pre>{@code
 * try (TcpStore store = TcpStore.open(RankInfo.fromEnvironment());
 *         Recovery recovery = Recovery.begin(store, "training", Communicator.builder().deadline(Duration.ofSeconds(30)))) {
 *     while (hasMoreSteps()) {
 *         try {
 *             step(recovery.communicator());
 *         } catch (NcclRemoteException | NcclTimeoutException lost) {
 *             recovery.recover(Duration.ofSeconds(10));
 *             restoreAgreedStep(recovery.communicator());
 *         }
 *     }
 * }
 * }</pre>
 *
 * <p><b>What recovery does.</b> {@link #recover} first stops the communicator on this rank. Then the live ranks agree
 * through the store on the survivors: the ranks that reach the store in time and whose connection to it has not ended.
 * If the library supports it (NCCL 2.27.3 and newer) and no survivor has aborted the communicator, the survivors shrink
 * it; otherwise, or if that fails, they create a new one. Ranks keep their order.
 *
 * <p><b>What recovery does not do.</b> Buffers of failed operations have undefined contents, and some ranks may have
 * completed an operation that failed at others. The program must return to a saved state, and the ranks must agree on
 * it, for example by an all-reduce of the step number.
 *
 * <p><b>Which ranks may be lost.</b> Every rank, if no rank keeps the store: ranks that the nccl4j command starts, and
 * those with {@code NCCL4J_STORE_ADDRESS}. Otherwise the process of rank 0 keeps the store, and its loss cannot be
 * recovered from. A rank that is stopped for longer than the others wait counts as lost, and gets an exception when it
 * continues. With the default {@link
 * FailurePolicy}, failures arrive as the exceptions above; a policy that aborts makes shrinking impossible.
 *
 * <p><b>Threads.</b> One thread at a time, as for the communicator.
 *
 * @since 0.1
 */
public final class Recovery implements AutoCloseable {
    private static final Duration SLICE = Duration.ofMillis(100);
    private static final String SHRINK = "shrink";
    private static final String CREATE = "create";

    private final TcpStore store;
    private final String name;
    private final CommunicatorBuilder builder;

    /** The rank at the store, by the rank in the communicator. */
    private List<Integer> members;

    private Communicator communicator;
    private int round;

    private Recovery(TcpStore store, String name, CommunicatorBuilder builder) {
        this.store = store;
        this.name = name;
        this.builder = builder;
        members = IntStream.range(0, store.size()).boxed().toList();
        communicator = builder.create(store.scope(name));
    }

    /**
     * Creates the communicator of all ranks of a store. Collective.
     *
     * @param store the store of the ranks, used now and by each recovery; must stay open while the recovery is used
     * @param name a name that is unique at this store; the same on all ranks, without a slash
     * @param builder settings for this communicator and its replacements; must not be changed while the recovery is
     *     used
     * @return the recovery, to be closed by the caller
     * @throws NcclException as {@link CommunicatorBuilder#create(Rendezvous)}
     */
    public static Recovery begin(TcpStore store, String name, CommunicatorBuilder builder) {
        return new Recovery(
                Objects.requireNonNull(store, "store"),
                Objects.requireNonNull(name, "name"),
                Objects.requireNonNull(builder, "builder"));
    }

    /** {@return the current communicator, of the ranks that survived the last recovery} */
    public Communicator communicator() {
        return communicator;
    }

    /**
     * Returns the ranks of the communicator as ranks of the store.
     *
     * @return the rank at the store of each rank of the communicator
     */
    public List<Integer> members() {
        return members;
    }

    /** Decision on which the survivors have agreed. */
    private record Decision(String how, List<Integer> survivors) {
        byte[] bytes() {
            return (how + " " + survivors.stream().map(Object::toString).collect(Collectors.joining(",")))
                    .getBytes(StandardCharsets.UTF_8);
        }

        static Decision of(byte[] bytes) {
            String[] parts = new String(bytes, StandardCharsets.UTF_8).split(" ");
            return new Decision(
                    parts[0],
                    Arrays.stream(parts[1].split(",")).map(Integer::valueOf).toList());
        }
    }

    /**
     * Replaces the communicator by one of the surviving ranks. Collective among them: each rank calls it after an
     * exception, or when it learns in another way that the communicator is to be replaced. Allowed also if no rank is
     * lost.
     *
     * <p>Objects that were created from the old communicator are unusable afterwards. If this throws, for example
     * because another rank was lost meanwhile, all surviving ranks may call it again.
     *
     * @param patience the time to wait for ranks that may be lost; must exceed the time that the other ranks need to
     *     notice the failure, which is at most the communicator's {@linkplain CommunicatorBuilder#deadline deadline}
     * @return the new communicator
     * @throws RendezvousException if the other ranks have counted this rank as lost, the store is lost, or this thread is
     *     interrupted
     * @throws NcclResultException if the new communicator can't be created
     * @throws IllegalArgumentException if the patience is negative
     */
    public Communicator recover(Duration patience) {
        long limit = Timeouts.nanoseconds(patience);
        round++;
        boolean canShrink = stop();
        Decision decision = agree(canShrink, limit, patience);
        int self = store.rank();
        if (!decision.survivors.contains(self)) {
            throw new RendezvousException("rank " + self + " was declared lost by the others, ranks "
                    + decision.survivors + ": it did not arrive within their patience");
        }
        Communicator old = communicator;
        Communicator made = decision.how.equals(SHRINK) ? shrink(decision.survivors) : null;
        if (made == null) {
            old.abort();
            made = builder.create(store.among(key("create"), decision.survivors));
        }
        members = decision.survivors;
        communicator = made;
        old.abort();
        return made;
    }

    private String key(String what) {
        return name + "-" + round + "-" + what;
    }

    private String alive(int rank) {
        return key("alive-" + rank);
    }

    /** Stops the communicator on this rank; returns true if it can be shrunk afterwards. */
    private boolean stop() {
        NcclLibrary library = NcclLibrary.get();
        try {
            if (communicator.state() == Communicator.State.OPEN && library.provides("ncclCommRevoke")) {
                communicator.revoke(RevokeFlag.DEFAULT);
            }
        } catch (NcclException | IllegalStateException e) {
            // The communicator may have ended meanwhile.
            communicator.abort();
        }
        boolean usable =
                communicator.state() == Communicator.State.OPEN || communicator.state() == Communicator.State.REVOKED;
        return usable && library.provides("ncclCommShrink");
    }

    /** The first rank that sees all members, or whose wait times out, decides for all ranks. */
    private Decision agree(boolean canShrink, long limit, Duration patience) {
        store.set(alive(store.rank()), new byte[] {(byte) (canShrink ? 1 : 0)});
        long start = System.nanoTime();
        while (!allMembersReady() && find(key("decision")) == null && System.nanoTime() - start <= limit) {
            // allMembersReady() has waited a little.
            continue;
        }
        if (store.add(key("decider"), 1) == 1) {
            store.set(key("decision"), decide().bytes());
        }
        // The deciding rank sets the key soon.
        return Decision.of(store.get(key("decision"), patience.plus(SLICE)));
    }

    private boolean allMembersReady() {
        List<Integer> gone = store.gone();
        List<String> keys = members.stream()
                .filter(rank -> !gone.contains(rank))
                .map(this::alive)
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
        try {
            return store.get(key, Duration.ZERO);
        } catch (RendezvousTimeoutException none) {
            return null;
        }
    }

    private Decision decide() {
        List<Integer> gone = store.gone();
        List<Integer> survivors = new ArrayList<>();
        boolean allCanShrink = true;
        for (int rank : members) {
            byte[] sign = gone.contains(rank) ? null : find(alive(rank));
            if (sign != null) {
                survivors.add(rank);
                allCanShrink &= sign[0] != 0;
            }
        }
        boolean hasLostRanks = survivors.size() < members.size();
        return new Decision(allCanShrink && hasLostRanks ? SHRINK : CREATE, survivors);
    }

    /** Returns the shrunken communicator, or null if shrinking failed on any rank. */
    private Communicator shrink(List<Integer> survivors) {
        List<Integer> excluded = IntStream.range(0, members.size())
                .filter(rank -> !survivors.contains(members.get(rank)))
                .boxed()
                .toList();
        Communicator made = null;
        NcclException problem = null;
        try {
            made = communicator.shrink(excluded, ShrinkFlag.ABORT);
        } catch (NcclException e) {
            problem = e;
        }
        boolean done = false;
        try {
            byte[] mine = {(byte) (made == null ? 0 : 1)};
            done = store.among(key("shrunk"), survivors).gather("made", mine, communicator.deadline()).stream()
                    .allMatch(each -> each[0] != 0);
        } catch (RuntimeException e) {
            if (problem != null) {
                e.addSuppressed(problem);
            }
            throw e;
        } finally {
            if (!done && made != null) {
                made.abort();
            }
        }
        if (done) {
            // As for a communicator that was created at the store.
            made.core().enableStatusQuery(store.among(key("shrunk"), survivors));
        }
        return done ? made : null;
    }

    /** Closes the communicator; see {@link Communicator#close}. */
    @Override
    public void close() {
        communicator.close();
    }
}
