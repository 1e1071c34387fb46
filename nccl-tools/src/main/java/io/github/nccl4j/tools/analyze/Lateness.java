package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Statistics of the ranks that came last to collectives. */
final class Lateness {
    /** A rank that is late in a larger part of the collectives is a straggler. */
    private static final double OFTEN = 0.2;

    private static final int ENOUGH = 3;
    private static final int MAX_STRAGGLERS = 4;

    /**
     * The number of times that a rank came last, and its delays.
     *
     * @param rank the rank in the job
     * @param late the number of collectives to which it came last, later than the threshold
     * @param measured the number of collectives of its communicators whose times are known
     * @param median the median of the delays, in microseconds
     * @param longest the longest delay, in microseconds
     * @param total the sum of the delays, in microseconds
     */
    record Straggler(int rank, int late, int measured, long median, long longest, long total) {
        private boolean isOften() {
            return late >= ENOUGH && late >= OFTEN * measured;
        }
    }

    /** The delays of a rank. */
    private static final class Delays {
        private final List<Long> late = new ArrayList<>();
        private int measured;
    }

    private final long threshold;
    private final ClockOffsets clocks;
    private final Set<CommunicatorRecords> explained;
    private final Map<Integer, Delays> byRank = new TreeMap<>();
    private final List<Finding> findings = new ArrayList<>();

    /**
     * Measures the delays in all communicators.
     *
     * @param explained the communicators with another finding: a delay is not the cause of their failure
     * @param threshold the shortest delay that counts, in microseconds
     */
    Lateness(Job job, ClockOffsets clocks, Set<CommunicatorRecords> explained, long threshold) {
        this.explained = explained;
        this.threshold = threshold;
        this.clocks = clocks;
        job.communicators().forEach(this::measure);
        stragglers().stream().filter(Straggler::isOften).limit(MAX_STRAGGLERS).forEach(this::report);
    }

    /** The ranks that came last at least once, the largest total first. */
    List<Straggler> stragglers() {
        List<Straggler> stragglers = new ArrayList<>();
        byRank.forEach((rank, delays) -> {
            long[] late = delays.late.stream().mapToLong(Long::longValue).toArray();
            if (late.length > 0) {
                long longest = 0;
                long total = 0;
                for (long delay : late) {
                    longest = Math.max(longest, delay);
                    total += delay;
                }
                stragglers.add(
                        new Straggler(rank, late.length, delays.measured, ClockOffsets.median(late), longest, total));
            }
        });
        stragglers.sort(Comparator.comparingLong(Straggler::total).reversed());
        return stragglers;
    }

    List<Finding> findings() {
        return findings;
    }

    private void measure(CommunicatorRecords communicator) {
        communicator.numbers().forEach(number -> measure(communicator, number));
    }

    private void measure(CommunicatorRecords communicator, long number) {
        RankRecord latest = null;
        long latestTime = Long.MIN_VALUE;
        List<Long> others = new ArrayList<>();
        for (RankRecord record : communicator.records()) {
            Call call = record.at(number);
            if (call == null || call.enqueued() == 0) {
                continue;
            }
            long time = clocks.enqueued(record, call);
            if (time > latestTime) {
                if (latest != null) {
                    others.add(latestTime);
                }
                latest = record;
                latestTime = time;
            } else {
                others.add(time);
            }
        }
        if (others.isEmpty()) {
            return;
        }
        communicator.records().forEach(record -> of(record).measured++);
        long delay = latestTime
                - ClockOffsets.median(others.stream().mapToLong(Long::longValue).toArray());
        if (delay >= threshold) {
            of(latest).late.add(delay);
            Call call = latest.at(number);
            boolean failed =
                    communicator.hasFailed() && !explained.contains(communicator) && number == lastCommon(communicator);
            if (failed) {
                reportFailed(communicator, latest, call, delay);
            }
        }
    }

    /** The last collective that all ranks with a record have called. */
    private static long lastCommon(CommunicatorRecords communicator) {
        return communicator.records().stream()
                .mapToLong(RankRecord::lastNumber)
                .min()
                .orElse(0);
    }

    private Delays of(RankRecord record) {
        return byRank.computeIfAbsent(record.jobRank(), rank -> new Delays());
    }

    private void reportFailed(CommunicatorRecords communicator, RankRecord latest, Call call, long delay) {
        findings.add(new Finding(
                "rank.late",
                List.of(latest.jobRank()),
                communicator.label(),
                call.sequence(),
                "Rank " + latest.jobRank() + " came " + Times.seconds(delay) + " after the other ranks to "
                        + call.describe() + " of communicator " + communicator.label(),
                "It is the last operation that all ranks have called before the failure: "
                        + communicator.records().stream()
                                .map(record -> record.header().failure)
                                .filter(failure -> !failure.isEmpty())
                                .map(failure -> failure.lines().findFirst().orElse(""))
                                .findFirst()
                                .orElse("")));
    }

    private void report(Straggler straggler) {
        findings.add(new Finding(
                "rank.straggler",
                List.of(straggler.rank()),
                "",
                0,
                "Rank " + straggler.rank() + " came last to " + straggler.late() + " of " + straggler.measured()
                        + " collectives, " + Times.seconds(straggler.median())
                        + " after the other ranks (median; longest "
                        + Times.seconds(straggler.longest()) + ")",
                "The other ranks waited " + Times.seconds(straggler.total())
                        + " for it: its machine is slower, or its program does more"));
    }
}
