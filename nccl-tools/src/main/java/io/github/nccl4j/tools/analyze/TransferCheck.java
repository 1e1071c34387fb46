package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Compares sends with receives: the n-th send of a rank to another meets the n-th receive of that rank from it. */
final class TransferCheck {
    private final CommunicatorRecords communicator;
    private final List<Finding> findings = new ArrayList<>();
    private final List<Blockage> blockages = new ArrayList<>();

    TransferCheck(CommunicatorRecords communicator) {
        this.communicator = communicator;
        for (RankRecord record : communicator.records()) {
            Map<Integer, Boolean> peers = new TreeMap<>();
            record.calls().stream()
                    .filter(call -> call.isSend() || call.isReceive())
                    .forEach(call -> peers.put(call.peer(), true));
            peers.keySet().forEach(peer -> compare(record, peer));
        }
    }

    /** The pairs that differ in type or count. */
    List<Finding> findings() {
        return findings;
    }

    /** The sends and receives that the other rank has not called. */
    List<Blockage> blockages() {
        return blockages;
    }

    private void compare(RankRecord record, int peer) {
        RankRecord other = communicator.of(peer);
        if (other == null || other.isCut()) {
            List<Call> pending = pending(record, peer, true);
            pending.addAll(pending(record, peer, false));
            if (other == null && !pending.isEmpty() && communicator.absent().contains(peer)) {
                block(record, pending.get(0), peer);
            }
            return;
        }
        // Records that have lost their beginning are compared from the first transfer that was not observed as done.
        boolean exact = record.isComplete() && other.isComplete();
        compare(
                record,
                exact ? all(record, peer, true) : pending(record, peer, true),
                other,
                exact ? all(other, record.rank(), false) : pending(other, record.rank(), false),
                true);
        compare(
                record,
                exact ? all(record, peer, false) : pending(record, peer, false),
                other,
                exact ? all(other, record.rank(), true) : pending(other, record.rank(), true),
                false);
    }

    private void compare(RankRecord record, List<Call> own, RankRecord other, List<Call> theirs, boolean sends) {
        int common = Math.min(own.size(), theirs.size());
        for (int i = 0; sends && i < common; i++) {
            Call send = own.get(i);
            Call receive = theirs.get(i);
            if (send.count() != receive.count() || !send.type().equals(receive.type())) {
                findings.add(
                        new Finding(
                                "transfer.mismatch",
                                List.of(record.jobRank(), other.jobRank()),
                                communicator.label(),
                                send.sequence(),
                                Ranks.title(List.of(record.jobRank())) + " called " + send.describe() + " and rank "
                                        + other.jobRank() + " " + receive.describe() + " of communicator "
                                        + communicator.label(),
                                "A send and the receive that takes it must have the same type and the same number of elements"));
                return;
            }
        }
        if (own.size() > common && !own.get(common).isDone()) {
            block(record, own.get(common), other.rank());
        }
    }

    private void block(RankRecord record, Call call, int peer) {
        if (CollectiveProgress.hasWaited(record, call)) {
            blockages.add(new Blockage(communicator, call, List.of(record), List.of(peer)));
        }
    }

    private static List<Call> all(RankRecord record, int peer, boolean sends) {
        return new ArrayList<>(record.calls().stream()
                .filter(call -> call.peer() == peer && (sends ? call.isSend() : call.isReceive()))
                .toList());
    }

    private static List<Call> pending(RankRecord record, int peer, boolean sends) {
        return new ArrayList<>(
                all(record, peer, sends).stream().filter(call -> !call.isDone()).toList());
    }
}
