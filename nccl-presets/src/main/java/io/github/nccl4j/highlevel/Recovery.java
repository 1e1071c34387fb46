package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.OwnDevice;
import io.github.nccl4j.internal.recovery.MemberAgreement;
import io.github.nccl4j.internal.recovery.MemberAgreement.Decision;
import io.github.nccl4j.internal.recovery.MemberAgreement.Means;
import io.github.nccl4j.internal.recovery.MemberAgreement.Member;
import io.github.nccl4j.internal.recovery.StateSource;
import io.github.nccl4j.internal.threads.Timeouts;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import io.github.nccl4j.launch.Store;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * A communicator that recovers from the loss of ranks, and admits ranks that come back.
 *
 * <pre>{@code
 * long step = 0;
 * try (TcpStore store = TcpStore.open(RankInfo.fromEnvironment());
 *         Recovery recovery = Recovery.begin(store, "training", Communicator.builder().deadline(Duration.ofSeconds(30)))) {
 *     while (step < 1000) {
 *         try {
 *             if (recovery.admit(Duration.ofSeconds(10))) {
 *                 step = recovery.broadcastState(step, stream, buffer);
 *             }
 *             step(recovery.communicator());
 *             step++;
 *         } catch (NcclRemoteException | NcclTimeoutException lost) {
 *             recovery.recover(Duration.ofSeconds(10));
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
 * <p><b>Ranks that come back.</b> A process that joins the store as a rank that is lost takes its place ({@link
 * Store#attempt}); its {@link #begin} waits until the members admit it, at their next call of {@link #admit} or {@link
 * #recover}. All members see the same processes in the same round. The communicator grows if the library supports it (NCCL 2.29.2
 * and newer) and no rank is lost at the same time; otherwise the members create a new one. Ranks that were admitted follow
 * the others: {@link #members}. If one of them is lost before its communicator exists, the others continue without it.
 *
 * <p><b>State.</b> Buffers of failed operations have undefined contents, and some ranks may have
 * completed an operation that failed at others. Therefore all ranks continue with the state of one of them, by {@link
 * #broadcastState}, or from a checkpoint on which they agree, for example by an all-reduce of the step number.
 *
 * <p><b>Which ranks may be lost.</b> Every rank, if no rank keeps the store: ranks that the nccl4j command starts, those
 * with {@code NCCL4J_STORE_ADDRESS}, and those of a store on ZooKeeper. Otherwise the process of rank 0 keeps the store, and
 * its loss cannot be recovered from. A rank that is stopped for longer than the others wait counts as lost, and gets an
 * exception when it continues. With the default {@link FailurePolicy}, failures arrive as the exceptions above; a policy that
 * aborts makes shrinking impossible.
 *
 * <p><b>Threads.</b> One thread at a time, as for the communicator.
 *
 * @since 0.1
 */
public final class Recovery implements AutoCloseable {
    /** The store notices the end of a process at once, but a library may report a failure earlier. */
    private static final Duration NOTICE = Duration.ofSeconds(1);

    /** Rounds of one call, each of which fails because another process was lost. */
    private static final int MAX_ROUNDS = 10;

    private final Store store;
    private final CommunicatorBuilder builder;
    private final MemberAgreement agreement;
    private final OwnDevice device;

    /** By the rank in the communicator. */
    private List<Member> members;

    /** Null until this process is admitted. */
    private Communicator communicator;

    private int round;
    /** The number of times that the members have asked in this round for waiting processes. */
    private int boundary;
    /** True if the members have changed since {@link #admit} has said so. */
    private boolean changed;

    /** True if this rank has lost the store, or the others count it as lost, and its communicator may not know yet. */
    private boolean isCutOff;
    /** False while the state of this process is not that of the others. */
    private boolean hasState;

    private Recovery(Store store, String name, CommunicatorBuilder builder) {
        this.store = store;
        this.builder = builder;
        agreement = new MemberAgreement(store, name);
        device = builder.ownDevice(store, name);
        hasState = store.attempt() == 0;
        if (hasState) {
            members = agreement.original();
            communicator = builder.create(store.scope(name), device);
        } else {
            comeBack();
        }
    }

    /**
     * Creates the communicator of all ranks of a store. Collective. If this process {@linkplain Store#attempt has taken the
     * place} of a lost one, waits instead until the other ranks admit it, up to the deadline of the builder.
     *
     * <p>If the builder has no device, the local rank determines it, as for {@link CommunicatorBuilder#fromEnvironment()}; if
     * no launcher started the ranks, or this process has taken a place and the launcher has not set its local rank, it is
     * {@link Device#current()}.
     *
     * @param store the store of the ranks, used now and by each recovery; must stay open while the recovery is used
     * @param name a name that is unique at this store; the same on all ranks, without a slash
     * @param builder settings for this communicator and its replacements; must not be changed while the recovery is
     *     used
     * @return the recovery, to be closed by the caller
     * @throws RendezvousTimeoutException if this process was not admitted in time
     * @throws RendezvousException if no rank is left that could admit this process
     * @throws NcclException as {@link CommunicatorBuilder#create(Rendezvous)}
     */
    public static Recovery begin(Store store, String name, CommunicatorBuilder builder) {
        return new Recovery(
                Objects.requireNonNull(store, "store"),
                Objects.requireNonNull(name, "name"),
                Objects.requireNonNull(builder, "builder"));
    }

    /** {@return the current communicator, of the ranks that survived the last recovery and those that were admitted} */
    public Communicator communicator() {
        return communicator;
    }

    /**
     * Returns the ranks of the communicator as ranks of the store.
     *
     * @return the rank at the store of each rank of the communicator
     */
    public List<Integer> members() {
        return members.stream().map(Member::rank).toList();
    }

    /**
     * Returns a rendezvous of the ranks of the communicator. Its calls fail as soon as one of these processes has ended, also if
     * another process has taken its place. Not collective.
     *
     * @param scope the name of its keys, the same on all ranks, without a slash
     * @return a view that is valid until the ranks change; closing it does nothing
     * @throws IllegalArgumentException if the name can't be used
     */
    @Incubating
    public Rendezvous rendezvous(String scope) {
        return agreement.scope(round, "program", members).scope(scope);
    }

    /**
     * Replaces the communicator by one of the surviving ranks, and of the ranks that wait to be admitted. Collective among the
     * survivors: each rank calls it after an exception, or when it learns in another way that the communicator is to be
     * replaced. Allowed also if no rank is lost.
     *
     * <p>Objects that were created from the old communicator are unusable afterwards. If further ranks are lost meanwhile, at any
     * moment, the others begin again, and wait for none of them once the store has noticed its end. If this throws, all surviving
     * ranks may call it again, except those that the others have counted as lost.
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
        change(stop(), patience, limit);
        return communicator;
    }

    /**
     * Admits the processes that wait in the places of lost ranks. Collective: each rank calls it between two steps, when no
     * operation of the communicator is pending. Does not communicate while no rank is missing, and otherwise makes one broadcast
     * at the store if no process waits.
     *
     * <p>If a process waits, the communicator is replaced by one that includes it, and objects that were created from the old
     * communicator are unusable afterwards.
     *
     * @param patience as for {@link #recover}
     * @return true if the ranks of the communicator have changed since this method returned true the last time, here or in {@link
     *     #recover}; the same on all ranks, and true in a process that was admitted: the ranks must agree on their state
     * @throws NcclRemoteException if a rank was lost; call {@link #recover}
     * @throws NcclTimeoutException if a rank did not call this method by the communicator's deadline; call {@link #recover}
     * @throws RendezvousException as {@link #recover}
     * @throws NcclResultException if the new communicator can't be created
     * @throws IllegalArgumentException if the patience is negative
     */
    @Incubating
    public boolean admit(Duration patience) {
        long limit = Timeouts.nanoseconds(patience);
        if (!changed) {
            if (members.size() == store.size() || !isAnyWaiting()) {
                return false;
            }
            change(able(Means.GROW), patience, limit);
        }
        changed = false;
        return true;
    }

    /** Asks the first rank, so that all ranks get the same answer. */
    private boolean isAnyWaiting() {
        boundary++;
        Rendezvous all = agreement.scope(round, "boundary", members);
        byte[] answer = guard(
                "Recovery.admit",
                () -> all.broadcast(
                        "" + boundary,
                        0,
                        () -> new byte[] {(byte) (agreement.isAnyWaiting(members) ? 1 : 0)},
                        communicator.deadline()));
        return answer[0] != 0;
    }

    /**
     * Gives all ranks the state of one of them: of the first rank of the communicator that has a state. That is the lowest
     * survivor, since admitted ranks follow the others and have no state before this call. Collective; waits for the
     * end of the broadcast.
     *
     * <p>A rank whose step is that of the source keeps its state, which must be equal in every bit. A rank with the state of another
     * step receives the new one into copies, so that it still has a state if the source is lost meanwhile.
     *
     * @param step the number of steps that the state of this rank has completed; ignored on a rank without a state
     * @param stream the stream of the operations
     * @param state the buffers; their number, lengths and types must be the same on all ranks
     * @return the number of steps that the source has completed
     * @throws IllegalArgumentException on all ranks, before any operation, if the buffers differ; the message names both ranks
     * @throws NcclRemoteException if a rank was lost; call {@link #recover}
     * @throws NcclTimeoutException if a rank did not call this method, or the broadcast was not done, by the deadline; call
     *     {@link #recover}
     * @throws RendezvousException if no rank has a state, or the store is lost
     */
    @Incubating
    public long broadcastState(long step, CudaStream stream, DeviceBuffer<?>... state) {
        List<DeviceBuffer<?>> buffers = List.of(state);
        List<String> described = buffers.stream()
                .map(buffer -> buffer.length() + " " + buffer.type())
                .toList();
        Rendezvous all = agreement.scope(round, "state", members);
        StateSource source = guard(
                "Recovery.broadcastState",
                () -> StateSource.find(all, hasState, step, described, communicator.deadline()));
        if (hasState && step != source.step()) {
            broadcastToCopies(source.rank(), buffers, stream);
        } else {
            broadcast(source.rank(), buffers, stream);
        }
        hasState = true;
        return source.step();
    }

    private void broadcast(int source, List<? extends DeviceBuffer<?>> buffers, CudaStream stream) {
        buffers.forEach(buffer -> communicator.broadcast(buffer, source, stream));
        communicator.work(stream).await();
    }

    /** Receives the state into copies, and copies them to the buffers when all have arrived. */
    private void broadcastToCopies(int source, List<DeviceBuffer<?>> buffers, CudaStream stream) {
        List<Copy<?>> copies = new ArrayList<>();
        try {
            for (DeviceBuffer<?> buffer : buffers) {
                copies.add(Copy.of(buffer));
            }
            broadcast(source, copies.stream().map(Copy::copy).toList(), stream);
            copies.forEach(Copy::back);
        } finally {
            copies.forEach(copy -> copy.copy.close());
        }
    }

    private record Copy<T extends Element>(DeviceBuffer<T> buffer, DeviceBuffer<T> copy) {
        static <T extends Element> Copy<T> of(DeviceBuffer<T> buffer) {
            return new Copy<>(buffer, buffer.device().allocate(buffer.type(), buffer.length()));
        }

        void back() {
            buffer.copyFrom(copy);
        }
    }

    /** Makes a call at the store. A failure that another rank caused is rethrown as an operation's exception. */
    private <T> T guard(String function, Supplier<T> call) {
        try {
            return call.get();
        } catch (RendezvousException failure) {
            CommunicatorCore core = communicator.core();
            isCutOff = true;
            if (agreement.isAnyLost(members, NOTICE)) {
                isCutOff = false;
                core.peers().awaitLoss(NOTICE);
                throw (NcclException)
                        core.failures().rankLost(function, function).initCause(failure);
            }
            if (failure instanceof RendezvousTimeoutException) {
                isCutOff = false;
                throw core.failures().storeTimedOut(function, function, communicator.deadline(), failure);
            }
            throw failure;
        }
    }

    /** Joins the other ranks after they have admitted this process. */
    private void comeBack() {
        Duration limit = builder.deadline();
        Means able = NcclLibrary.get().provides("ncclCommGrow") ? Means.GROW : Means.CREATE;
        round = agreement.awaitAdmission(able, limit, Timeouts.nanoseconds(limit));
        Decision decision = agreement.decision(round, limit);
        members = decision.members();
        try {
            make(decision, List.of());
        } catch (NcclException failure) {
            if (!isWorthAnotherRound(failure)) {
                throw failure;
            }
            change(Means.CREATE, limit, Timeouts.nanoseconds(limit));
        }
    }

    /** Agrees on the members and makes their communicator, again if that fails because one of them was lost. */
    private void change(Means first, Duration patience, long limit) {
        // A call after the one that has thrown this must not decide for the others.
        requireMember();
        Means able = first;
        for (int attempt = 1; ; attempt++) {
            round++;
            boundary = 0;
            Decision decision = agreement.agree(round, members, able, attempt == 1, patience, limit);
            List<Member> before = members;
            members = decision.members();
            requireMember();
            try {
                make(decision, before);
                return;
            } catch (NcclException failure) {
                // Its ranks are no longer those of the members.
                abort();
                if (attempt == MAX_ROUNDS || !isWorthAnotherRound(failure)) {
                    throw failure;
                }
                able = Means.CREATE;
            }
        }
    }

    private void requireMember() {
        if (!members.contains(agreement.self())) {
            throw new RendezvousException("rank " + store.rank() + " was declared lost by the others, ranks " + members
                    + ": it did not arrive within their patience");
        }
    }

    private boolean isWorthAnotherRound(NcclException failure) {
        return failure instanceof RendezvousTimeoutException
                || failure instanceof NcclTimeoutException
                || agreement.isAnyLost(members, NOTICE);
    }

    /** Stops the communicator on this rank; returns what can be done with it afterwards. */
    private Means stop() {
        NcclLibrary library = NcclLibrary.get();
        try {
            if (communicator.state() == Communicator.State.OPEN && library.provides("ncclCommRevoke")) {
                communicator.revoke(RevokeFlag.DEFAULT);
            }
        } catch (NcclException | IllegalStateException e) {
            // The communicator may have ended meanwhile.
            communicator.abort();
        }
        return able(Means.SHRINK);
    }

    /** Returns what can be done with the communicator, up to a limit. */
    private Means able(Means most) {
        NcclLibrary library = NcclLibrary.get();
        Communicator.State state = communicator.state();
        if (most == Means.GROW && state == Communicator.State.OPEN && library.provides("ncclCommGrow")) {
            return Means.GROW;
        }
        boolean usable = state == Communicator.State.OPEN || state == Communicator.State.REVOKED;
        return usable && library.provides("ncclCommShrink") ? Means.SHRINK : Means.CREATE;
    }

    private void abort() {
        if (communicator != null) {
            communicator.abort();
        }
    }

    /** Makes the communicator of the decision; {@code before} are the members of the current one. */
    private void make(Decision decision, List<Member> before) {
        Rendezvous all = agreement.scope(round, "create", members);
        Communicator made =
                switch (decision.means()) {
                    case SHRINK -> shrink(decision, before);
                    case GROW -> grow(decision);
                    case CREATE -> null;
                };
        if (made == null) {
            abort();
            made = builder.create(all, device);
        }
        Communicator old = communicator;
        communicator = made;
        changed = true;
        if (old != null) {
            old.abort();
        }
    }

    /** Returns the shrunken communicator, or null if shrinking failed on any rank. */
    private Communicator shrink(Decision decision, List<Member> before) {
        List<Integer> excluded = IntStream.range(0, before.size())
                .filter(rank -> !decision.survivors().contains(before.get(rank)))
                .boxed()
                .toList();
        Rendezvous survivors = agreement.scope(round, "shrunk", members);
        Communicator made = derive(survivors, () -> communicator.shrink(excluded, ShrinkFlag.ABORT));
        if (made != null) {
            // As for a communicator that was created at the store.
            made.core().ranks().enableStatusQuery(survivors);
        }
        return made;
    }

    /** Returns the grown communicator, or null if growing failed on any rank. */
    private Communicator grow(Decision decision) {
        Rendezvous all = agreement.scope(round, "grown", members);
        return derive(
                all,
                () -> decision.admitted().contains(agreement.self())
                        ? builder.join(all, device)
                        : communicator.grow(all));
    }

    /** Derives a communicator; returns null if that failed on any rank. */
    private Communicator derive(Rendezvous all, Supplier<Communicator> how) {
        Communicator made = null;
        RuntimeException problem = null;
        try {
            made = how.get();
        } catch (NcclException | IllegalStateException e) {
            // The communicator may have ended since this rank told the others its means.
            problem = e;
        }
        boolean done = false;
        try {
            byte[] mine = {(byte) (made == null ? 0 : 1)};
            done = all.gather("made", mine, builder.deadline()).stream().allMatch(each -> each[0] != 0);
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
        return done ? made : null;
    }

    /**
     * Closes the communicator; see {@link Communicator#close}. Aborts it if {@link #admit} or {@link #broadcastState} has found
     * that this rank has lost the store, or that the others count it as lost: they do not take part in the end.
     */
    @Override
    public void close() {
        if (isCutOff) {
            communicator.abort();
        } else {
            communicator.close();
        }
    }
}
