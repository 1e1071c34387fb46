package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntFunction;

/**
 * Finds the causes among the operations in which ranks wait. An operation whose absent rank waits in another one is a consequence of
 * that one. Operations that wait for each other are their own cause.
 */
final class WaitGraph {
    private final List<Blockage> all;
    private final Set<Blockage> explained;
    private final List<Set<Integer>> next = new ArrayList<>();
    private final List<List<Blockage>> cycles = new ArrayList<>();
    private final List<Blockage> causes = new ArrayList<>();
    private int consequences;

    /**
     * Creates the graph.
     *
     * @param explained operations whose cause is known
     */
    WaitGraph(List<Blockage> all, Set<Blockage> explained) {
        this.all = all;
        this.explained = explained;
        Map<String, List<Integer>> waitsIn = new HashMap<>();
        for (int i = 0; i < all.size(); i++) {
            for (String member : all.get(i).waitingMembers()) {
                waitsIn.computeIfAbsent(member, one -> new ArrayList<>()).add(i);
            }
        }
        for (int i = 0; i < all.size(); i++) {
            Set<Integer> targets = new HashSet<>();
            for (String member : all.get(i).absentMembers()) {
                targets.addAll(waitsIn.getOrDefault(member, List.of()));
            }
            targets.remove(i);
            next.add(targets);
        }
        classify();
    }

    /** The operations whose absent ranks wait nowhere else. */
    List<Blockage> causes() {
        return causes;
    }

    /** Operations that wait for each other, directly or through others. */
    List<List<Blockage>> cycles() {
        return cycles;
    }

    /** The number of operations that wait because of the causes. */
    int consequences() {
        return consequences;
    }

    private void classify() {
        Set<Integer> inCycle = new HashSet<>();
        for (int i = 0; i < all.size(); i++) {
            List<Integer> path = inCycle.contains(i) ? List.of() : shortestCycle(i, next::get);
            if (!path.isEmpty()) {
                inCycle.addAll(path);
                cycles.add(path.stream().map(all::get).toList());
            }
        }
        for (int i = 0; i < all.size(); i++) {
            if (inCycle.contains(i) || explained.contains(all.get(i))) {
                continue;
            }
            if (next.get(i).isEmpty()) {
                causes.add(all.get(i));
            } else {
                consequences++;
            }
        }
    }

    /** The nodes of the shortest way from a node back to itself; empty if there is none. */
    static List<Integer> shortestCycle(int start, IntFunction<Set<Integer>> targets) {
        Map<Integer, Integer> from = new HashMap<>();
        List<Integer> queue = new ArrayList<>(List.of(start));
        for (int head = 0; head < queue.size(); head++) {
            int node = queue.get(head);
            for (int target : targets.apply(node)) {
                if (target == start) {
                    List<Integer> path = new ArrayList<>();
                    for (int step = node; step != start; step = from.get(step)) {
                        path.add(0, step);
                    }
                    path.add(0, start);
                    return path;
                }
                if (from.putIfAbsent(target, node) == null) {
                    queue.add(target);
                }
            }
        }
        return List.of();
    }
}
