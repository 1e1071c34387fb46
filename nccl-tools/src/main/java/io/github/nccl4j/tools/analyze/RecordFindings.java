package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Findings about cut, unreadable and missing files, and about operations that all ranks called and some ranks did not
 * finish.
 */
final class RecordFindings {
    private RecordFindings() {}

    /**
     * Returns the findings.
     *
     * @param others the findings of the operations: a rank that one of them has is not reported as missing again
     */
    static List<Finding> of(Job job, List<String> unreadable, List<Finding> others) {
        List<Finding> findings = new ArrayList<>();
        Set<Integer> reported = new HashSet<>();
        others.forEach(finding -> reported.addAll(finding.jobRanks()));
        for (CommunicatorRecords communicator : job.communicators()) {
            communicator.records().stream().filter(RankRecord::isCut).forEach(record -> {
                findings.add(cut(communicator, record));
                reported.add(record.jobRank());
            });
        }
        unreadable.forEach(message -> findings.add(new Finding(
                "record.cut",
                List.of(),
                "",
                0,
                "A record can't be read: " + message,
                "The process crashed while it wrote the file, or another program wrote it")));
        for (CommunicatorRecords communicator : job.communicators()) {
            List<Integer> absent = communicator.absent().stream()
                    .filter(rank -> !reported.contains(rank))
                    .toList();
            if (communicator.isWorld() && !absent.isEmpty()) {
                findings.add(new Finding(
                        "record.missing",
                        absent,
                        communicator.label(),
                        0,
                        Ranks.title(absent) + (absent.size() == 1 ? " has" : " have") + " no record of communicator "
                                + communicator.label() + ", which has " + communicator.size() + " ranks",
                        "The process was killed, is stopped, did not fail, or its file is missing here"));
            }
            if (others.isEmpty() && findings.isEmpty()) {
                stuck(communicator, findings);
            }
        }
        return findings;
    }

    private static Finding cut(CommunicatorRecords communicator, RankRecord record) {
        Call last = record.last();
        long recorded = record.header().recorded;
        return new Finding(
                "record.cut",
                List.of(record.jobRank()),
                communicator.label(),
                last == null ? 0 : last.sequence(),
                "Rank " + record.jobRank() + "'s record of communicator " + communicator.label() + " is cut off after "
                        + (last == null ? "its beginning" : last.describe()),
                "The process ended while it wrote " + record.file().getFileName()
                        + (recorded < 0 ? "" : ", which should end with operation " + recorded));
    }

    /** All ranks have called the last collective with the same arguments, but a failure was reported or only some have finished it. */
    private static void stuck(CommunicatorRecords communicator, List<Finding> findings) {
        long last = communicator.records().stream()
                .mapToLong(RankRecord::lastNumber)
                .min()
                .orElse(0);
        List<RankRecord> waiting = communicator.records().stream()
                .filter(record -> record.at(last) != null && !record.at(last).isDone())
                .toList();
        boolean partly = waiting.size() < communicator.records().size()
                && waiting.stream()
                        .anyMatch(record ->
                                record.header().written - record.at(last).enqueued() >= 1_000_000);
        if (waiting.isEmpty() || !communicator.hasFailed() && !partly) {
            return;
        }
        List<Integer> ranks = waiting.stream().map(RankRecord::jobRank).toList();
        String failure = communicator.records().stream()
                .map(record -> record.header().failure)
                .filter(text -> !text.isEmpty())
                .findFirst()
                .orElse("")
                .lines()
                .findFirst()
                .orElse("");
        findings.add(new Finding(
                "operation.stuck",
                ranks,
                communicator.label(),
                waiting.get(0).at(last).sequence(),
                Ranks.title(ranks) + " did not finish "
                        + waiting.get(0).at(last).describe() + " of communicator " + communicator.label()
                        + ", which all ranks called with the same arguments",
                failure.isEmpty()
                        ? "The program is not the cause; look at the network, the GPUs and their links"
                        : "The failure is: " + failure));
    }
}
