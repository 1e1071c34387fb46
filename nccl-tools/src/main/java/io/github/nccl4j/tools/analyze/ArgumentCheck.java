package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;

/** Compares the arguments of each collective across the ranks of a communicator, and reports the first difference of each rank. */
final class ArgumentCheck {
    /** The arguments that must agree, in the order of comparison: a rank that called another function is not compared further. */
    private enum Argument {
        FUNCTION("call.function", Call::plainFunction),
        TYPE("call.type", Call::type),
        COUNT("call.count", Call::count),
        ROOT("call.root", Call::peer),
        REDUCTION("call.reduction", Call::op);

        private final String id;
        private final Function<Call, Object> value;

        Argument(String id, Function<Call, Object> value) {
            this.id = id;
            this.value = value;
        }
    }

    private final CommunicatorRecords communicator;
    private final List<Finding> findings = new ArrayList<>();
    private final Set<Integer> differing = new HashSet<>();
    private long firstDifference = Long.MAX_VALUE;

    ArgumentCheck(CommunicatorRecords communicator) {
        this.communicator = communicator;
    }

    /** Returns the differences; a rank that differed once is not compared any more. */
    List<Finding> check() {
        communicator.numbers().forEach(this::compare);
        return findings;
    }

    /** The number of the first collective in which ranks differed; later ones may differ because of it. */
    long firstDifference() {
        return firstDifference;
    }

    private void compare(long number) {
        Map<Integer, Call> calls = new TreeMap<>();
        for (RankRecord record : communicator.records()) {
            Call call = record.at(number);
            if (call != null && !differing.contains(record.rank())) {
                calls.put(record.rank(), call);
            }
        }
        for (Argument argument : Argument.values()) {
            Map<Object, List<Integer>> groups = new LinkedHashMap<>();
            calls.forEach((rank, call) -> groups.computeIfAbsent(argument.value.apply(call), value -> new ArrayList<>())
                    .add(rank));
            if (groups.size() > 1) {
                List<Integer> majority = majority(groups);
                groups.values().stream()
                        .filter(group -> group != majority)
                        .forEach(group -> report(argument, number, group, majority));
                firstDifference = Math.min(firstDifference, number);
                groups.values().stream().filter(group -> group != majority).forEach(group -> {
                    differing.addAll(group);
                    group.forEach(calls::remove);
                });
            }
        }
    }

    /** The largest group; of equal ones, the first. */
    private static List<Integer> majority(Map<Object, List<Integer>> groups) {
        List<Integer> largest = List.of();
        for (List<Integer> group : groups.values()) {
            largest = group.size() > largest.size() ? group : largest;
        }
        return largest;
    }

    private void report(Argument argument, long number, List<Integer> group, List<Integer> majority) {
        RankRecord other = communicator.of(group.get(0));
        RankRecord reference = communicator.of(majority.get(0));
        Call theirs = other.at(number);
        Call expected = reference.at(number);
        List<Integer> ranks = jobRanks(group);
        String others = Ranks.text(jobRanks(majority));
        // If the calls after the difference agree, no call was omitted or added.
        boolean single = equalCalls(reference, number + 1, other, number + 1) > 0;
        boolean left = !single && equalCalls(reference, number + 1, other, number) > 1;
        if (left) {
            findings.add(new Finding(
                    "call.missing",
                    ranks,
                    communicator.label(),
                    expected.sequence(),
                    Ranks.title(ranks) + " did not call " + expected.describe() + " of communicator "
                            + communicator.label() + ", which " + others + " called",
                    "The later calls agree, beginning with " + theirs.describe()));
            return;
        }
        boolean added = !single && equalCalls(other, number + 1, reference, number) > 1;
        boolean tie = group.size() == majority.size();
        findings.add(new Finding(
                argument.id,
                tie ? both(group, majority) : ranks,
                communicator.label(),
                expected.sequence(),
                Ranks.title(ranks) + " called " + theirs.describe() + " of communicator " + communicator.label()
                        + " where " + others + " called " + expected.describe(),
                reason(argument, theirs, expected)
                        + (added ? "; the later calls agree, so this call is superfluous" : "")
                        + (tie ? "; the records do not show which of them is wrong" : "")));
    }

    private static String reason(Argument argument, Call theirs, Call expected) {
        return switch (argument) {
            case FUNCTION -> "The functions differ: " + theirs.function() + ", not " + expected.function();
            case TYPE -> "The types of the elements differ: " + theirs.type() + ", not " + expected.type();
            case COUNT -> "The numbers of elements differ: " + theirs.count() + ", not " + expected.count();
            case ROOT -> "The roots differ: rank " + theirs.peer() + ", not rank " + expected.peer();
            case REDUCTION -> "The reductions differ: " + theirs.op() + ", not " + expected.op();
        };
    }

    /**
     * Counts the equal calls of two ranks, each from its own number on, to the end of the shorter record; 0 if a call differs.
     */
    private static int equalCalls(RankRecord one, long from, RankRecord other, long otherFrom) {
        for (int equal = 0; ; equal++) {
            Call first = one.at(from + equal);
            Call second = other.at(otherFrom + equal);
            if (first == null || second == null) {
                return equal;
            }
            if (!first.arguments().equals(second.arguments())) {
                return 0;
            }
        }
    }

    private List<Integer> jobRanks(List<Integer> ranks) {
        return ranks.stream().map(rank -> communicator.of(rank).jobRank()).toList();
    }

    private List<Integer> both(List<Integer> some, List<Integer> others) {
        List<Integer> both = new ArrayList<>(some);
        both.addAll(others);
        return jobRanks(both);
    }
}
