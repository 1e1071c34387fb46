package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The records of the newest job of a folder, by communicator. Immutable.
 *
 * @param communicators the communicators, in the order in which the files were read
 * @param records the records that the communicators have
 * @param olderRecords the number of records of earlier jobs, which were omitted
 * @param replaced records of ranks that have a newer one, which were omitted
 */
record Job(
        List<CommunicatorRecords> communicators,
        List<RankRecord> records,
        int olderRecords,
        List<RankRecord> replaced) {

    /** Selects the newest job: records of one job are connected by common processes and communicators. */
    static Job newestOf(List<RankRecord> all) {
        Map<String, String> parents = new HashMap<>();
        for (RankRecord record : all) {
            String origin = root(parents, "id " + record.header().communicator.replaceFirst("\\..*", ""));
            // Records of torch do not have the number of the process; those of a folder are of one job.
            parents.put(origin, root(parents, "process " + record.process().replaceFirst("^/rank .*", "torch")));
        }
        Map<String, List<RankRecord>> jobs = new LinkedHashMap<>();
        for (RankRecord record : all) {
            String job = root(parents, "id " + record.header().communicator.replaceFirst("\\..*", ""));
            jobs.computeIfAbsent(job, one -> new ArrayList<>()).add(record);
        }
        List<RankRecord> newest = jobs.values().stream()
                .max(Comparator.comparingLong(Job::written))
                .orElse(List.of());
        Map<String, CommunicatorRecords> communicators = new LinkedHashMap<>();
        List<RankRecord> replaced = new ArrayList<>();
        for (RankRecord record : newest) {
            RankRecord older = communicators
                    .computeIfAbsent(record.header().communicator, CommunicatorRecords::new)
                    .add(record);
            if (older != null) {
                replaced.add(older);
            }
        }
        List<CommunicatorRecords> found = List.copyOf(communicators.values());
        List<RankRecord> kept = found.stream()
                .flatMap(communicator -> communicator.records().stream())
                .toList();
        return new Job(found, kept, all.size() - newest.size(), List.copyOf(replaced));
    }

    private static String root(Map<String, String> parents, String node) {
        String root = node;
        while (!parents.getOrDefault(root, root).equals(root)) {
            root = parents.get(root);
        }
        return root;
    }

    private static long written(List<RankRecord> job) {
        return job.stream().mapToLong(record -> record.header().written).max().orElse(0);
    }

    /** The names of the hosts of the ranks. */
    List<String> hosts() {
        return records.stream()
                .map(record -> record.header().host)
                .filter(host -> !host.isEmpty())
                .distinct()
                .sorted()
                .toList();
    }

    /** The number of operations in all records. */
    long operations() {
        return records.stream().mapToLong(record -> record.calls().size()).sum();
    }

    /** The number of processes with a record. */
    long members() {
        return records.stream().map(RankRecord::member).distinct().count();
    }
}
