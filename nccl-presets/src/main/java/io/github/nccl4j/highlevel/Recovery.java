package io.github.nccl4j.highlevel;

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
 * A communicator that goes on without the ranks that it loses.
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
 * <p><b>What is done.</b> {@link #recover} stops the communicator here. Then the ranks that live agree at the store who they are:
 * those that come to it within a time, without those whose connection to the store has ended. Then they shrink the communicator,
 * where the library can (NCCL 2.27.3 and newer) and none of them has aborted it; else, or if that fails, they make a new
 * one. Ranks keep their order.
 *
 * <p><b>What is not done.</b> Buffers of operations that failed hold anything, and some ranks may have completed an
 * operation that failed at others: the program goes back to a state that it has kept, and the ranks agree on it, for example
 * by an all-reduce of the number of the step.
 *
 * <p><b>Who may be lost.</b> Every rank but rank 0, whose process keeps the store. A rank that is stopped for longer than the
 * others wait is taken for lost, and told so when it comes. With the default {@link FailurePolicy} failures arrive as the exceptions above; a
 * policy that aborts makes shrinking impossible.
 *
 * <p><b>Threads.</b> One thread at a time, as for the communicator.
 */
public final class Recovery implements AutoCloseable {
    private static final Duration SLICE = Duration.ofMillis(100);
    private static final String SHRINK = "shrink";
    private static final String CREATE = "create";

    private final TcpStore store;
    private final String name;
    private final CommunicatorBuilder builder;

    /** The store's ranks, by the rank of the communicator. */
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
     * Makes the communicator of all ranks of a store. Collective.
     *
     * @param store where the ranks meet, now and when some are lost; open as long as this
     * @param name tells it from others at this store; the same for all ranks, without a slash
     * @param builder settings for this communicator and those that replace it; not changed as long as this is used
     * @return the recovery, to be closed by the caller
     * @throws NcclException as {@link CommunicatorBuilder#create(Rendezvous)}
     */
    public static Recovery begin(TcpStore store, String name, CommunicatorBuilder builder) {
        return new Recovery(
                Objects.requireNonNull(store, "store"),
                Objects.requireNonNull(name, "name"),
                Objects.requireNonNull(builder, "builder"));
    }

    /** {@return the communicator of the ranks that are left, as far as it is known} */
    public Communicator communicator() {
        return communicator;
    }

    /**
     * Who the ranks of the communicator are.
     *
     * @return the rank at the store of each rank of the communicator
     */
    public List<Integer> members() {
        return members;
    }

    /** What the ranks that live have agreed on. */
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
     * Replaces the communicator by one of the ranks that live. Collective among these: each calls it when it has got an
     * exception, or learns in another way that the communicator is to be given up. Also if no rank is lost.
     *
     * <p>What was made from the old communicator can't be used any more. If this throws, because another rank was lost meanwhile for example,
     * it may be called again, by all.
     *
     * @param patience how long to wait for ranks that may be lost; longer than it takes the others to notice, which is
     *     the communicator's {@linkplain CommunicatorBuilder#deadline deadline} at most
     * @return the new communicator
     * @throws RendezvousException if the others have taken this rank for lost, rank 0 is lost, or this thread is interrupted
     * @throws NcclResultException if the new communicator can't be made
     * @throws IllegalArgumentException if the patience is negative
     */
    public Communicator recover(Duration patience) {
        long limit = Waiting.nanoseconds(patience);
        round++;
        boolean canShrink = stop();
        Decision decision = agree(canShrink, limit, patience);
        int self = store.rank();
        if (!decision.survivors.contains(self)) {
            throw new RendezvousException("rank " + self + " was taken for lost by the others, which are ranks "
                    + decision.survivors + " now: it has not come within their patience");
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

    /** Ends what this rank is doing. Whether the communicator can be shrunk then. */
    private boolean stop() {
        NcclLibrary library = NcclLibrary.get();
        try {
            if (communicator.state() == Communicator.State.OPEN && library.provides("ncclCommRevoke")) {
                communicator.revoke(RevokeFlag.DEFAULT);
            }
        } catch (NcclException | IllegalStateException e) {
            // It may have ended meanwhile.
            communicator.abort();
        }
        boolean usable =
                communicator.state() == Communicator.State.OPEN || communicator.state() == Communicator.State.REVOKED;
        return usable && library.provides("ncclCommShrink");
    }

    /** Who first knows all, or has waited long enough, decides for all. */
    private Decision agree(boolean canShrink, long limit, Duration patience) {
        store.set(alive(store.rank()), new byte[] {(byte) (canShrink ? 1 : 0)});
        long start = System.nanoTime();
        while (!allAreThere() && find(key("decision")) == null && System.nanoTime() - start <= limit) {
            // allAreThere() has waited a little.
            continue;
        }
        if (store.add(key("decider"), 1) == 1) {
            store.set(key("decision"), decide().bytes());
        }
        // The decider is about to say it.
        return Decision.of(store.get(key("decision"), patience.plus(SLICE)));
    }

    private boolean allAreThere() {
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

    /** The value that a key has now, else null. */
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
        boolean someAreLost = survivors.size() < members.size();
        return new Decision(allCanShrink && someAreLost ? SHRINK : CREATE, survivors);
    }

    /** Null if it has not worked for all. */
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
            // As one that is made anew, which meets at the store.
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
