package io.github.nccl4j.highlevel;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Thrown on all ranks, with the same message, if the ranks of a communicator were about to make different calls, as
 * detected by {@link CommunicatorBuilder#check}. No rank has made its call.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public final class CallMismatchException extends NcclException {
    private static final long serialVersionUID = 1L;

    /** The call of each rank. */
    private final String[] calls;

    CallMismatchException(String communicator, long number, List<String> calls) {
        super("the ranks of " + communicator + " differ in collective call " + number + ": " + describe(calls)
                + ". Nothing was called.");
        this.calls = calls.toArray(String[]::new);
    }

    /** Lists the differing ranks first. */
    private static String describe(List<String> calls) {
        Map<String, List<Integer>> byCall = new LinkedHashMap<>();
        for (int rank = 0; rank < calls.size(); rank++) {
            byCall.computeIfAbsent(calls.get(rank), call -> new ArrayList<>()).add(rank);
        }
        String usual = usual(calls);
        List<String> parts = new ArrayList<>();
        byCall.forEach((call, ranks) -> {
            if (!call.equals(usual)) {
                parts.add(describe(ranks, call));
            }
        });
        parts.add(describe(byCall.get(usual), usual));
        return String.join("; ", parts);
    }

    private static String describe(List<Integer> ranks, String call) {
        return (ranks.size() == 1 ? "rank " : "ranks ")
                + ranks.stream().map(Object::toString).collect(Collectors.joining(", "))
                + (ranks.size() == 1 ? " calls " : " call ")
                + call;
    }

    /** Returns the call of most ranks; if there is none, the call of the lowest rank. */
    private static String usual(List<String> calls) {
        String usual = calls.get(0);
        long most = 0;
        for (String call : calls) {
            long same = calls.stream().filter(call::equals).count();
            if (same > most) {
                most = same;
                usual = call;
            }
        }
        return usual;
    }

    /**
     * Returns the call that each rank was about to make.
     *
     * @return the calls by rank
     */
    public List<String> calls() {
        return List.of(calls);
    }

    /**
     * Returns the ranks that differ from the majority; without a majority, those that differ from the lowest rank.
     *
     * @return the ranks in ascending order
     */
    public List<Integer> oddRanks() {
        String usual = usual(Arrays.asList(calls));
        List<Integer> odd = new ArrayList<>();
        for (int rank = 0; rank < calls.length; rank++) {
            if (!calls[rank].equals(usual)) {
                odd.add(rank);
            }
        }
        return odd;
    }

    @Override
    public String helpId() {
        return "NCCL4J-0008";
    }
}
