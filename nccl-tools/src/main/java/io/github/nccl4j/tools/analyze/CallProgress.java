package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Finds a call other than an operation, such as a split, in which some ranks of a communicator wait for the others. */
final class CallProgress {
    /** The functions that all ranks call. */
    private static final Set<String> COLLECTIVE =
            Set.of("ncclCommSplit", "ncclCommGrow", "ncclCommWindowRegister", "ncclCommFinalize");

    private CallProgress() {}

    /**
     * Returns the finding.
     *
     * @param elsewhere the ranks that wait in an operation, which keeps them from the call
     */
    static Optional<Finding> of(CommunicatorRecords communicator, Set<String> elsewhere) {
        List<RankRecord> waiting = communicator.records().stream()
                .filter(record -> COLLECTIVE.contains(record.header().call))
                .toList();
        Optional<String> function =
                waiting.stream().map(record -> record.header().call).findFirst();
        List<RankRecord> absent = communicator.records().stream()
                .filter(record -> !record.isCut() && !record.header().call.equals(function.orElse("")))
                .toList();
        List<Integer> silent = communicator.absent();
        if (function.isEmpty()
                || absent.isEmpty() && silent.isEmpty()
                || absent.stream().anyMatch(record -> elsewhere.contains(record.member()))
                || waiting.stream().noneMatch(CallProgress::hasWaited)) {
            return Optional.empty();
        }
        List<Integer> ranks =
                new ArrayList<>(absent.stream().map(RankRecord::jobRank).toList());
        ranks.addAll(silent);
        long since = waiting.stream()
                .mapToLong(record -> record.header().called)
                .filter(time -> time > 0)
                .min()
                .orElse(0);
        List<Integer> others = waiting.stream().map(RankRecord::jobRank).toList();
        boolean known = communicator.isWorld() || silent.isEmpty();
        String without = silent.isEmpty()
                ? ""
                : Ranks.title(silent) + (silent.size() == 1 ? " has" : " have")
                        + " no record: the process was killed, is stopped, or its file is missing here";
        return Optional.of(new Finding(
                "rank.missing",
                ranks,
                communicator.label(),
                0,
                Ranks.title(ranks) + (known ? "" : " of " + communicator.label()) + " did not reach " + function.get()
                        + " of communicator " + communicator.label()
                        + ", in which " + Ranks.text(others)
                        + (others.size() == 1 ? " has waited" : " have waited")
                        + (since == 0 ? "" : " since " + Times.text(since)),
                Stream.concat(
                                Stream.of(without).filter(text -> !text.isEmpty()),
                                absent.stream().limit(3).map(WaitFindings::place))
                        .collect(Collectors.joining(". ")),
                known));
    }

    private static boolean hasWaited(RankRecord record) {
        RankRecord.Header header = record.header();
        return record.hasFailed()
                || header.called == 0
                || header.written - header.called >= CollectiveProgress.PATIENCE;
    }
}
