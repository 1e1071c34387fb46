package io.github.nccl4j.tools.analyze;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * An operation in which ranks wait for others.
 *
 * @param communicator the communicator
 * @param call the operation, as recorded by the first rank that waits
 * @param waiting the records of the ranks that have called it and have not observed it as done
 * @param absent the ranks that have not called it
 */
record Blockage(CommunicatorRecords communicator, Call call, List<RankRecord> waiting, List<Integer> absent) {

    Set<String> waitingMembers() {
        return waiting.stream().map(RankRecord::member).collect(Collectors.toSet());
    }

    /** The absent ranks that have a record. */
    Set<String> absentMembers() {
        return absent.stream()
                .map(communicator::of)
                .filter(record -> record != null)
                .map(RankRecord::member)
                .collect(Collectors.toSet());
    }

    List<Integer> waitingRanks() {
        return waiting.stream().map(RankRecord::jobRank).toList();
    }

    List<Integer> absentRanks() {
        return absent.stream()
                .map(rank -> communicator.of(rank) == null
                        ? rank
                        : Integer.valueOf(communicator.of(rank).jobRank()))
                .toList();
    }

    /** True if the absent ranks are numbers of the job. */
    boolean isAbsentOfJob() {
        return communicator.isWorld() || absent.stream().allMatch(rank -> communicator.of(rank) != null);
    }

    /** "Rank 3", or "Rank 1 of 'rows'" if the rank in the job is not known. */
    String absentTitle() {
        return Ranks.title(absentRanks()) + (isAbsentOfJob() ? "" : " of " + communicator.label());
    }
}
