package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Estimates how far the clocks of hosts differ: a collective that needs all ranks ends at about the same time everywhere. The
 * estimate is the median over the collectives that two hosts have observed as done.
 */
final class ClockOffsets {
    /** With fewer common collectives, the clocks are taken as they are. */
    private static final int ENOUGH = 8;

    /** Smaller differences are those of the observation, in microseconds. */
    private static final long RESOLUTION = 200_000;

    private final Map<String, Long> byHost = new TreeMap<>();

    ClockOffsets(Job job) {
        List<String> hosts = job.hosts();
        for (int i = 1; i < hosts.size(); i++) {
            List<Long> differences = new ArrayList<>();
            for (CommunicatorRecords communicator : job.communicators()) {
                collect(communicator, hosts.get(0), hosts.get(i), differences);
            }
            long offset = median(differences.stream().mapToLong(Long::longValue).toArray());
            if (differences.size() >= ENOUGH && Math.abs(offset) > RESOLUTION) {
                byHost.put(hosts.get(i), offset);
            }
        }
    }

    private static void collect(CommunicatorRecords communicator, String host, String other, List<Long> differences) {
        RankRecord here = first(communicator, host);
        RankRecord there = first(communicator, other);
        if (here == null || there == null) {
            return;
        }
        for (Call call : here.calls()) {
            Call same = call.number() > 0 ? there.at(call.number()) : null;
            if (call.isDone() && same != null && same.isDone()) {
                differences.add(same.done() - call.done());
            }
        }
    }

    private static RankRecord first(CommunicatorRecords communicator, String host) {
        return communicator.records().stream()
                .filter(record -> record.header().host.equals(host))
                .findFirst()
                .orElse(null);
    }

    /** The middle of some numbers; 0 if there are none. */
    static long median(long[] numbers) {
        long[] sorted = numbers.clone();
        Arrays.sort(sorted);
        return sorted.length == 0 ? 0 : sorted[sorted.length / 2];
    }

    /** The time at which a rank made a call, by the clock of the first host. */
    long enqueued(RankRecord record, Call call) {
        return call.enqueued() - byHost.getOrDefault(record.header().host, 0L);
    }

    /** By host: the microseconds by which its clock is ahead of that of the first host, if the difference matters. */
    Map<String, Long> byHost() {
        return byHost;
    }
}
