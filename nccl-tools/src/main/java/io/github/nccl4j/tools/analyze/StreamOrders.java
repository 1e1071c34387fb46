package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * Finds operations that wait for each other because ranks have enqueued them in different orders in one stream: an operation waits
 * for the one before it in the stream, at every rank that has called both. Operations of one communicator are ordered by their
 * numbers, those of several communicators by the times of their calls. Within one tick of the recorder's clock that order is
 * unknown.
 */
final class StreamOrders {
    /** The newest unfinished operations of a communicator that are compared. */
    private static final int MAX_COMPARED = 1000;

    /** A call of a rank as part of an operation. */
    private record Place(int operation, RankRecord record, Call call) {}

    /** Operations that wait for another one, by that one: the ranks at which they do. */
    private static final class Edges {
        private final List<Map<Integer, Set<RankRecord>>> next = new ArrayList<>();

        void add(int waiting, int other, RankRecord where) {
            if (waiting != other) {
                next.get(waiting).computeIfAbsent(other, one -> new HashSet<>()).add(where);
            }
        }

        Set<RankRecord> at(int waiting, int other) {
            return next.get(waiting).getOrDefault(other, Set.of());
        }
    }

    private final List<Blockage> operations = new ArrayList<>();
    /** By process and stream, then by communicator: the calls, the oldest first. */
    private final Map<String, Map<RankRecord, List<Place>>> streams = new LinkedHashMap<>();

    private final Set<Blockage> explained = new HashSet<>();
    private final Edges known = new Edges();
    private final Edges possible = new Edges();

    /**
     * Compares the orders.
     *
     * @param missing the operations that not all ranks have called
     * @param differences the first collective of each communicator that ranks called with different arguments
     */
    StreamOrders(Job job, List<Blockage> missing, Map<CommunicatorRecords, Long> differences) {
        for (Blockage blockage : missing) {
            int operation = add(blockage);
            blockage.waiting().forEach(record -> {
                Call call =
                        blockage.call().number() > 0 ? record.at(blockage.call().number()) : blockage.call();
                place(operation, record, call);
            });
        }
        for (CommunicatorRecords communicator : job.communicators()) {
            collectives(communicator, differences.getOrDefault(communicator, Long.MAX_VALUE));
        }
        int collectives = operations.size();
        job.communicators().forEach(this::transfers);
        streams.values().forEach(stream -> stream.values().forEach(calls -> connect(stream, calls, collectives)));
        for (Blockage blockage : missing) {
            connectAbsent(blockage);
        }
    }

    private int add(Blockage operation) {
        operations.add(operation);
        known.next.add(new TreeMap<>());
        possible.next.add(new TreeMap<>());
        return operations.size() - 1;
    }

    private void place(int operation, RankRecord record, Call call) {
        if (!call.stream().isEmpty()) {
            streams.computeIfAbsent(record.member() + " " + call.stream(), one -> new LinkedHashMap<>())
                    .computeIfAbsent(record, one -> new ArrayList<>())
                    .add(new Place(operation, record, call));
        }
    }

    /** Adds the collectives that all ranks with a record have called, and none has finished. */
    private void collectives(CommunicatorRecords communicator, long end) {
        long[] numbers = communicator.numbers().filter(number -> number < end).toArray();
        for (int i = Math.max(0, numbers.length - MAX_COMPARED); i < numbers.length; i++) {
            long number = numbers[i];
            List<RankRecord> records = List.copyOf(communicator.records());
            if (records.size() > 1
                    && records.stream()
                            .allMatch(record -> record.at(number) != null
                                    && !record.at(number).isDone())) {
                int operation = add(new Blockage(communicator, records.get(0).at(number), records, List.of()));
                records.forEach(record -> place(operation, record, record.at(number)));
            }
        }
    }

    /** Adds the sends and receives that both ranks have called, and none has finished. */
    private void transfers(CommunicatorRecords communicator) {
        for (RankRecord sender : communicator.records()) {
            Map<Integer, List<Call>> sends = pending(sender, true);
            sends.forEach((peer, calls) -> {
                RankRecord receiver = communicator.of(peer);
                List<Call> receives = receiver == null || receiver == sender
                        ? List.of()
                        : pending(receiver, false).getOrDefault(sender.rank(), List.of());
                for (int i = 0; i < Math.min(calls.size(), receives.size()); i++) {
                    int operation = add(new Blockage(communicator, calls.get(i), List.of(sender, receiver), List.of()));
                    place(operation, sender, calls.get(i));
                    place(operation, receiver, receives.get(i));
                }
            });
        }
    }

    private static Map<Integer, List<Call>> pending(RankRecord record, boolean sends) {
        Map<Integer, List<Call>> byPeer = new TreeMap<>();
        List<Call> calls = record.calls();
        for (Call call : calls.subList(Math.max(0, calls.size() - MAX_COMPARED), calls.size())) {
            if (!call.isDone() && (sends ? call.isSend() : call.isReceive())) {
                byPeer.computeIfAbsent(call.peer(), peer -> new ArrayList<>()).add(call);
            }
        }
        return byPeer;
    }

    /** Connects the calls of a rank in a communicator with those before them in the stream. */
    private void connect(Map<RankRecord, List<Place>> stream, List<Place> calls, int collectives) {
        calls.sort(
                (one, other) -> Long.compare(one.call().sequence(), other.call().sequence()));
        for (int i = 1; i < calls.size(); i++) {
            Place before = calls.get(i - 1);
            if (!together(before.call(), calls.get(i).call())) {
                connect(calls.get(i), before, collectives);
            }
        }
        for (Map.Entry<RankRecord, List<Place>> other : stream.entrySet()) {
            if (other.getValue() == calls) {
                continue;
            }
            NavigableMap<Long, Place> byTime = new TreeMap<>();
            other.getValue().forEach(place -> byTime.merge(place.call().enqueued(), place, StreamOrders::later));
            for (Place place : calls) {
                long time = place.call().enqueued();
                Map.Entry<Long, Place> before = time == 0 ? null : byTime.lowerEntry(time);
                if (before != null && before.getKey() > 0) {
                    connect(place, before.getValue(), collectives);
                }
                Place near = byTime.get(time);
                boolean grouped =
                        near != null && place.call().group() > 0 && near.call().group() > 0;
                if (near != null && !grouped) {
                    possible.add(place.operation(), near.operation(), place.record());
                }
            }
        }
    }

    private static Place later(Place one, Place other) {
        return other.call().sequence() > one.call().sequence() ? other : one;
    }

    /** A small send may end before its receive begins, so that transfers only may wait. */
    private void connect(Place place, Place before, int collectives) {
        boolean waits = place.operation() < collectives && before.operation() < collectives;
        (waits ? known : possible).add(place.operation(), before.operation(), place.record());
    }

    private static boolean together(Call one, Call other) {
        return one.group() > 0 && one.group() == other.group();
    }

    /** An operation that a rank has not called waits for those in which the rank waits. */
    private void connectAbsent(Blockage blockage) {
        int waiting = operations.indexOf(blockage);
        Set<String> absent = blockage.absentMembers();
        for (int other = 0; other < operations.size(); other++) {
            for (RankRecord record : operations.get(other).waiting()) {
                if (absent.contains(record.member())) {
                    known.add(waiting, other, record);
                }
            }
        }
    }

    /** The operations that certainly wait for each other. */
    List<Finding> certain() {
        return findings(
                known, "Each waits for the other: the ranks use communicators in different orders in one stream");
    }

    /** The operations that wait for each other if the ranks called them in different orders. */
    List<Finding> possible() {
        for (int one = 0; one < operations.size(); one++) {
            for (Map.Entry<Integer, Set<RankRecord>> edge : known.next.get(one).entrySet()) {
                for (RankRecord record : edge.getValue()) {
                    possible.add(one, edge.getKey(), record);
                }
            }
        }
        for (int one = 0; one < operations.size(); one++) {
            int waiting = one;
            // One rank has one order.
            possible.next.get(one).entrySet().removeIf(edge -> {
                Set<String> members = new HashSet<>(members(edge.getValue()));
                members.addAll(members(possible.at(edge.getKey(), waiting)));
                return !possible.at(edge.getKey(), waiting).isEmpty() && members.size() == 1;
            });
        }
        return findings(
                possible,
                "Ranks that call them in different orders wait for each other. The records do not show the order of calls within"
                        + " 0.1 s: compare it in the program; if it is the same, look at the network, the GPUs and their links");
    }

    private static Set<String> members(Set<RankRecord> records) {
        Set<String> members = new HashSet<>();
        records.forEach(record -> members.add(record.member()));
        return members;
    }

    /** The operations of the findings: they are the cause, even if a rank has not called them. */
    Set<Blockage> explained() {
        return explained;
    }

    private List<Finding> findings(Edges edges, String reason) {
        List<Finding> findings = new ArrayList<>();
        Set<Integer> seen = new HashSet<>();
        for (int start = 0; start < operations.size(); start++) {
            List<Integer> cycle = seen.contains(start)
                    ? List.of()
                    : WaitGraph.shortestCycle(
                            start, node -> edges.next.get(node).keySet());
            // Ranks that did not call the operations of each other are reported with their last calls.
            boolean ordered =
                    cycle.stream().anyMatch(one -> operations.get(one).absent().isEmpty());
            boolean waits = hasWaited(cycle) && (edges == known || isObserved(cycle));
            if (ordered && waits && cycle.stream().noneMatch(seen::contains)) {
                cycle.forEach(one -> explained.add(operations.get(one)));
                findings.add(finding(edges, cycle, reason));
            }
            seen.addAll(cycle);
        }
        // Later operations of the same communicators only wait behind the first.
        return findings.subList(0, Math.min(1, findings.size()));
    }

    private boolean hasWaited(List<Integer> cycle) {
        return cycle.stream().allMatch(one -> operations.get(one).waiting().stream()
                .anyMatch(record ->
                        CollectiveProgress.hasWaited(record, operations.get(one).call())));
    }

    /** False if the program may not look for the end of its operations, so that all of them seem to wait. */
    private boolean isObserved(List<Integer> cycle) {
        return cycle.stream()
                .map(one -> operations.get(one).communicator())
                .anyMatch(one -> one.hasFailed()
                        || one.records().stream()
                                .anyMatch(record -> record.calls().stream().anyMatch(Call::isDone)));
    }

    private Finding finding(Edges edges, List<Integer> cycle, String reason) {
        Set<Integer> ranks = new TreeSet<>();
        List<String> parts = new ArrayList<>();
        boolean transfers = true;
        for (int i = 0; i < cycle.size(); i++) {
            int waiting = cycle.get(i);
            int before = cycle.get((i + 1) % cycle.size());
            List<Integer> where = edges.at(waiting, before).stream()
                    .map(RankRecord::jobRank)
                    .distinct()
                    .sorted()
                    .toList();
            ranks.addAll(where);
            transfers &= operations.get(waiting).call().number() == 0;
            parts.add((i == 0 ? Ranks.title(where) : Ranks.text(where))
                    + (where.size() == 1 ? " waits in " : " wait in ") + place(before) + " before " + place(waiting));
        }
        String unknown = Ranks.title(ranks) + " wait in "
                + cycle.stream().map(this::place).collect(Collectors.joining(" and in ")) + ", called in one stream";
        Blockage first = operations.get(cycle.get(0));
        return new Finding(
                transfers ? "transfer.order" : "order.communicators",
                List.copyOf(ranks),
                first.communicator().label(),
                first.call().sequence(),
                edges == known ? String.join("; ", parts) : unknown,
                reason);
    }

    private String place(int operation) {
        return WaitFindings.place(operations.get(operation));
    }
}
