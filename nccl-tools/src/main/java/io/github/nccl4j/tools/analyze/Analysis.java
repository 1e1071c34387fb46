package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The analysis of a job. Immutable.
 *
 * @param job the records
 * @param profile the files of the profiler
 * @param omitted a message for each file that may be a record and was not analyzed, unless a finding names it or it is of an
 *     earlier job
 * @param findings the findings, the most likely cause first
 * @param stragglers the ranks that came last to collectives
 * @param clocks by host: the microseconds by which its clock is ahead of that of the first host
 * @param consequences the number of other operations in which ranks wait because of the findings
 */
record Analysis(
        Job job,
        Profile profile,
        List<String> omitted,
        List<Finding> findings,
        List<Lateness.Straggler> stragglers,
        Map<String, Long> clocks,
        int consequences) {
    /** The findings in the order of a report: a finding is often the cause of those that follow it. */
    private static final List<String> BY_WEIGHT = List.of(
            "call.missing",
            "call.function",
            "call.type",
            "call.count",
            "call.root",
            "call.reduction",
            "transfer.mismatch",
            "order.communicators",
            "transfer.order",
            "rank.late",
            "rank.missing",
            "transfer.missing",
            "record.cut",
            "operation.stuck",
            "record.missing",
            "rank.straggler");

    /**
     * Analyzes the newest job of a folder.
     *
     * @param threshold the shortest delay that counts as late, in microseconds
     */
    static Analysis of(RecordFolder folder, long threshold) {
        Job job = Job.newestOf(folder.records());
        List<Finding> findings = new ArrayList<>();
        List<Blockage> blockages = new ArrayList<>();
        Set<CommunicatorRecords> explained = new HashSet<>();
        Map<CommunicatorRecords, Long> differences = new HashMap<>();
        for (CommunicatorRecords communicator : job.communicators()) {
            ArgumentCheck arguments = new ArgumentCheck(communicator);
            findings.addAll(arguments.check());
            TransferCheck transfers = new TransferCheck(communicator);
            findings.addAll(transfers.findings());
            if (arguments.firstDifference() < Long.MAX_VALUE
                    || !transfers.findings().isEmpty()) {
                explained.add(communicator);
            }
            differences.put(communicator, arguments.firstDifference());
            blockages.addAll(transfers.blockages());
            new CollectiveProgress(communicator)
                    .blockage()
                    .filter(blockage -> blockage.call().number() < arguments.firstDifference())
                    .ifPresent(blockages::add);
        }
        StreamOrders orders = new StreamOrders(job, blockages, differences);
        findings.addAll(orders.certain());
        blockages.forEach(blockage -> explained.add(blockage.communicator()));
        orders.explained().forEach(operation -> explained.add(operation.communicator()));
        WaitGraph graph = new WaitGraph(blockages, orders.explained());
        findings.addAll(WaitFindings.of(graph));
        Set<String> waiting = new HashSet<>();
        blockages.forEach(blockage -> waiting.addAll(blockage.waitingMembers()));
        job.communicators()
                .forEach(communicator -> CallProgress.of(communicator, waiting).ifPresent(finding -> {
                    explained.add(communicator);
                    findings.add(finding);
                }));
        ClockOffsets clocks = new ClockOffsets(job);
        Lateness lateness = new Lateness(job, clocks, explained, threshold);
        findings.addAll(lateness.findings());
        if (findings.isEmpty()) {
            findings.addAll(orders.possible());
        }
        findings.addAll(RecordFindings.of(job, folder.unreadable(), findings));
        findings.sort(Comparator.comparingInt(finding -> BY_WEIGHT.indexOf(finding.id())));
        return new Analysis(
                job,
                folder.profile(),
                omitted(folder, job),
                List.copyOf(findings),
                lateness.stragglers(),
                clocks.byHost(),
                graph.consequences());
    }

    private static List<String> omitted(RecordFolder folder, Job job) {
        List<String> omitted = new ArrayList<>(folder.pickles());
        job.replaced()
                .forEach(record -> omitted.add(record.file() + ": rank " + record.rank()
                        + " of the communicator has a newer record in another file"));
        return List.copyOf(omitted);
    }

    /** The exit code: 1 if there is a finding, else 0. */
    int exitCode() {
        return findings.isEmpty() ? 0 : 1;
    }
}
