package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.internal.diagnostics.CommunicatorInfo;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.StatusEntry;
import java.lang.ref.WeakReference;

/**
 * The ranks of a communicator: the key that identifies it on all of them, the lost ranks, the queries of the others, and
 * the ranks in this process. Not volatile: written before the gate opens for the first time.
 */
public final class CommunicatorRanks {
    private final CommunicatorInfo communicator;
    private final ProcessRanks.Member member;
    private final boolean owner;
    private final CommunicatorSettings settings;

    /** Queries the other ranks when an operation is late; null if that is impossible. */
    private RankStatusQuery statusQuery;

    /** As {@link #statusQuery} of the communicator from which this one is being derived; else null. */
    private RankStatusQuery queryOfParent;

    /** The entry in the status of this rank; null if no observer can ask for this communicator. */
    private StatusEntry status;

    /** The lost ranks, as the rendezvous reports them. */
    private PeerWatch peers = new PeerWatch();

    private boolean watched;

    /** Identifies the communicator in the process; null if unknown. */
    private CommunicatorKey key;

    /** The communicator from which this one was derived, if any: its rank in the first communicator; else -1. */
    private int ancestorRank = -1;

    /** The communicator's ranks in this process, on CUDA devices. */
    private ProcessRanks inProcess;

    CommunicatorRanks(
            CommunicatorInfo communicator, ProcessRanks.Member member, boolean owner, CommunicatorSettings settings) {
        this.communicator = communicator;
        this.member = member;
        this.owner = owner;
        this.settings = settings;
    }

    /** The key that identifies the communicator on all its ranks; null if there is none. */
    public CommunicatorKey key() {
        return key;
    }

    boolean isNamed() {
        return key != null && key.isKnown();
    }

    String identity() {
        return key == null ? CommunicatorKey.UNKNOWN.text() : key.text();
    }

    public void setKey(CommunicatorKey key) {
        this.key = key;
    }

    /** Sets the key of a communicator that is derived from another one. */
    public void setKey(CommunicatorKey key, CommunicatorRanks parent) {
        this.key = key;
        ancestorRank = parent.worldRank();
        queryOfParent = parent.statusQuery;
    }

    int worldRank() {
        return ancestorRank >= 0 || !isNamed() ? ancestorRank : communicator.expectedRank();
    }

    /** Joins the ranks of this process. */
    void join() {
        if (owner && communicator.device().isCuda() && key != null) {
            inProcess = ProcessRanks.join(key, member);
        }
    }

    /** Begins queries, watch and status at the rendezvous of the settings, or else at that of the check of calls. */
    void meet() {
        Rendezvous watchedAt = settings.rendezvous();
        Rendezvous where = watchedAt != null ? watchedAt : settings.check();
        enableStatusQuery(where);
        watchPeers(peers);
        if (owner && isNamed()) {
            status = CommunicatorStatus.add(where, communicator);
        }
    }

    /** Enables status queries by a rendezvous, if the rendezvous has the same ranks; null disables them. */
    public void enableStatusQuery(Rendezvous where) {
        int rank = communicator.expectedRank();
        int size = communicator.expectedSize();
        if (isNamed() && owner && where != null && where.rank() == rank && where.size() == size && size > 1) {
            WeakReference<CommunicatorInfo> dropped = new WeakReference<>(communicator);
            statusQuery = RankStatusQuery.begin("roll-" + identity(), rank, size, where, () -> position(dropped.get()));
        }
    }

    /**
     * Watches for lost ranks through the rendezvous at which the communicator, or its origin, was created. Has no
     * effect if the other ranks can't know the name of the communicator, or if this method was called before.
     *
     * @param watch the watch to use; may have lost ranks already
     */
    public void watchPeers(PeerWatch watch) {
        peers = watch;
        Rendezvous where = settings.rendezvous();
        if (isNamed() && owner && communicator.expectedSize() > 1 && where != null && !watched) {
            watched = true;
            watch.enter(where, "members-" + identity(), communicator.expectedRank());
        }
    }

    PeerWatch peers() {
        return peers;
    }

    /** This rank's answer to the questions of other ranks; null is a communicator that was dropped. */
    public static RankStatusQuery.Position position(CommunicatorInfo communicator) {
        if (communicator == null) {
            return new RankStatusQuery.Position(0, false, "", "", "has dropped its communicator");
        }
        OperationLog.Entry last = communicator.operationLog().last();
        String ended =
                switch ((CommunicatorState) communicator.state()) {
                    case CLOSED -> "has closed its communicator; its program may have failed: see its log";
                    case ABORTED -> "has aborted its communicator";
                    default -> "";
                };
        return new RankStatusQuery.Position(
                last.sequence(), last.done() != 0, last.describe(), communicator.waitsIn(), ended);
    }

    /** Null if the ranks can't be queried. */
    public RankStatusQuery statusQuery() {
        return communicator.state() == CommunicatorState.PENDING ? queryOfParent : statusQuery;
    }

    /** Called before the communicator is finalized. */
    void setFinalized() {
        if (inProcess != null) {
            inProcess.setFinalized();
        }
    }

    /** Returns false if other ranks of this process are not finalized yet. */
    boolean isFinalizedAlone() {
        return inProcess == null || inProcess.isFinalizedAlone();
    }

    /**
     * Frees the communicator.
     *
     * @param waits true to wait for other ranks of this process
     */
    void leave(boolean waits, Runnable free) {
        if (inProcess == null) {
            free.run();
        } else {
            inProcess.leave(member, waits, free);
        }
    }

    /**
     * Ends queries, status and watch.
     *
     * @param stays true if the other ranks learn of the end from that of this process
     */
    void end(boolean stays) {
        if (statusQuery != null) {
            statusQuery.end();
        }
        if (status != null) {
            status.close();
        }
        if (stays) {
            peers.stay();
        } else {
            peers.close();
        }
    }
}
