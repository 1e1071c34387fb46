package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** Describes the operations in which ranks wait for others. */
final class WaitFindings {
    private WaitFindings() {}

    static List<Finding> of(WaitGraph graph) {
        List<Finding> findings = new ArrayList<>();
        graph.cycles().forEach(cycle -> findings.add(cycle(cycle)));
        graph.causes().forEach(cause -> findings.add(missing(cause)));
        return findings;
    }

    /** The ranks of a cycle that fewer others agree with are named first. */
    private static Finding cycle(List<Blockage> cycle) {
        Blockage fewest = cycle.get(0);
        Blockage most = cycle.get(0);
        for (Blockage one : cycle) {
            fewest = one.waiting().size() < fewest.waiting().size() ? one : fewest;
            most = one.waiting().size() > most.waiting().size() ? one : most;
        }
        if (fewest == most) {
            most = cycle.get(1);
        }
        boolean tie = fewest.waiting().size() == most.waiting().size();
        Set<Integer> ranks = new TreeSet<>(fewest.waitingRanks());
        if (tie) {
            cycle.forEach(one -> ranks.addAll(one.waitingRanks()));
        }
        String operations = place(fewest) + ", and " + Ranks.text(most.waitingRanks()) + " in " + place(most);
        boolean transfers = cycle.stream().allMatch(one -> one.call().number() == 0);
        return new Finding(
                transfers ? "transfer.order" : "order.communicators",
                List.copyOf(ranks),
                fewest.communicator().label(),
                fewest.call().sequence(),
                Ranks.title(fewest.waitingRanks())
                        + (fewest.waiting().size() == 1 ? " waits in " : " wait in ")
                        + operations,
                transfers
                        ? "Each waits for the other, which sends or receives only after its own operation: put both in a Group"
                        : "Each waits for the other: the ranks use communicators in different orders");
    }

    /** An operation and its communicator. */
    static String place(Blockage blockage) {
        return blockage.call().describe() + " of communicator "
                + blockage.communicator().label();
    }

    private static Finding missing(Blockage blockage) {
        boolean transfer = blockage.call().number() == 0;
        String others = Ranks.text(blockage.waitingRanks());
        return new Finding(
                transfer ? "transfer.missing" : "rank.missing",
                blockage.absentRanks(),
                blockage.communicator().label(),
                blockage.call().sequence(),
                blockage.absentTitle() + " did not reach " + place(blockage) + ", in which " + others + wait(blockage),
                reason(blockage),
                blockage.isAbsentOfJob());
    }

    private static String wait(Blockage blockage) {
        long first = blockage.waiting().stream()
                .map(record -> call(record, blockage))
                .filter(call -> call != null && call.enqueued() > 0)
                .mapToLong(Call::enqueued)
                .min()
                .orElse(0);
        boolean one = blockage.waiting().size() == 1;
        return first == 0 ? one ? " waits" : " wait" : (one ? " has" : " have") + " waited since " + Times.text(first);
    }

    private static Call call(RankRecord record, Blockage blockage) {
        return blockage.call().number() > 0 ? record.at(blockage.call().number()) : blockage.call();
    }

    private static String reason(Blockage blockage) {
        List<Integer> silent = blockage.absent().stream()
                .filter(rank -> blockage.communicator().of(rank) == null)
                .toList();
        String text = silent.isEmpty() ? "" : withoutRecord(blockage, silent);
        List<String> present = blockage.absent().stream()
                .map(rank -> blockage.communicator().of(rank))
                .filter(record -> record != null)
                .limit(3)
                .map(WaitFindings::place)
                .toList();
        return text + (text.isEmpty() || present.isEmpty() ? "" : ". ") + String.join(". ", present);
    }

    /** A rank that cannot write its record is killed, stopped or unreachable; failures of others show which. */
    private static String withoutRecord(Blockage blockage, List<Integer> silent) {
        String failures = blockage.waiting().stream()
                .map(record -> record.header().failure)
                .collect(Collectors.joining("\n"))
                .toLowerCase(Locale.ROOT);
        String subject = silent.size() == 1 ? "The rank has" : "The ranks " + silent + " have";
        String cause;
        if (failures.contains("ncclremoteerror") || failures.contains("ncclsystemerror")) {
            cause = ": the process ended, as the others report " + firstFailure(blockage);
        } else if (failures.contains("no answer from")) {
            cause = " and did not answer: the process is stopped, or its machine cannot be reached";
        } else {
            cause = ": the process was killed, is stopped, or its file is missing here";
        }
        return subject + " no record" + cause;
    }

    private static String firstFailure(Blockage blockage) {
        return blockage.waiting().stream()
                .map(record -> record.header().failure)
                .filter(failure -> !failure.isEmpty())
                .map(failure -> failure.lines().findFirst().orElse(""))
                .findFirst()
                .orElse("a failure");
    }

    /** The last operation of a rank that did not reach the call. */
    static String place(RankRecord record) {
        Call last = record.last();
        String rank = "Rank " + record.jobRank();
        if (!record.header().call.isEmpty()) {
            return rank + " is in " + record.header().call;
        }
        String ended =
                switch (record.header().state) {
                    case "CLOSED" -> rank + " has closed the communicator; its";
                    default -> rank + "'s";
                };
        if (last == null) {
            return rank + " has called no operation in this communicator";
        }
        return ended + " last operation is " + last.describe()
                + (last.enqueued() == 0 ? "" : ", called " + Times.text(last.enqueued()))
                + (last.isDone() ? ", done" : ", not observed as done");
    }
}
