package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The ranks of a job as lanes of a picture: those with a record, and those that have none, by their rank in the job.
 *
 * @param all the lanes, in the order of their ranks
 * @param begin the time of the first operation, in microseconds since 1970; 0 if no time is known
 * @param end the time of the last event
 */
record Lanes(List<Lane> all, long begin, long end) {

    /**
     * A rank.
     *
     * @param rank the rank in the job
     * @param records its records, one for each communicator; empty if it has none
     * @param culprit true if a finding names the rank
     */
    record Lane(int rank, List<RankRecord> records, boolean culprit) {
        /** The host and the process, or the reason why these are not known. */
        String place() {
            if (records.isEmpty()) {
                return "no record";
            }
            RankRecord.Header header = records.get(0).header();
            String process =
                    header.host.isEmpty() ? header.process : "process " + header.process + " of " + header.host;
            return header.device.isEmpty() ? process : process + ", " + header.device;
        }
    }

    static Lanes of(Analysis analysis) {
        Set<Integer> culprits = new TreeSet<>();
        analysis.findings().forEach(finding -> culprits.addAll(finding.jobRanks()));
        Map<Integer, List<RankRecord>> byRank = new TreeMap<>();
        for (CommunicatorRecords communicator : analysis.job().communicators()) {
            communicator.records().forEach(record -> byRank.computeIfAbsent(record.jobRank(), rank -> new ArrayList<>())
                    .add(record));
            if (communicator.isWorld()) {
                communicator.absent().forEach(rank -> byRank.computeIfAbsent(rank, one -> new ArrayList<>()));
            }
        }
        List<Lane> lanes = new ArrayList<>();
        byRank.forEach((rank, records) -> lanes.add(new Lane(rank, records, culprits.contains(rank))));
        List<Long> times = new ArrayList<>();
        analysis.job().records().forEach(record -> {
            record.calls().forEach(call -> {
                times.add(call.enqueued());
                times.add(call.done());
            });
            times.add(record.header().written);
        });
        // 1 stands for a time that is not known.
        times.removeIf(time -> time <= 1);
        long begin = times.stream().min(Comparator.naturalOrder()).orElse(0L);
        return new Lanes(
                lanes, begin, times.stream().max(Comparator.naturalOrder()).orElse(0L));
    }
}
