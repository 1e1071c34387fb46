package io.github.nccl4j.tools.analyze;

import java.util.List;
import java.util.Map;

/**
 * The ids of findings: headings of docs/errors.md. A number is never given to another finding, because pages and reports of other
 * people name it.
 */
final class HelpIds {
    static final Map<String, String> BY_FINDING = Map.ofEntries(
            Map.entry("call.function", "NCCL4J-0201"),
            Map.entry("call.missing", "NCCL4J-0202"),
            Map.entry("call.type", "NCCL4J-0203"),
            Map.entry("call.count", "NCCL4J-0204"),
            Map.entry("call.root", "NCCL4J-0205"),
            Map.entry("call.reduction", "NCCL4J-0206"),
            Map.entry("order.communicators", "NCCL4J-0207"),
            Map.entry("rank.missing", "NCCL4J-0208"),
            Map.entry("rank.late", "NCCL4J-0209"),
            Map.entry("rank.straggler", "NCCL4J-0210"),
            Map.entry("transfer.missing", "NCCL4J-0211"),
            Map.entry("transfer.mismatch", "NCCL4J-0212"),
            Map.entry("operation.stuck", "NCCL4J-0213"),
            Map.entry("record.missing", "NCCL4J-0214"),
            Map.entry("record.cut", "NCCL4J-0215"),
            Map.entry("transfer.order", "NCCL4J-0216"));

    /** The findings in the order of a report: a finding is often the cause of those that follow it here. */
    static final List<String> BY_WEIGHT = List.of(
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

    private HelpIds() {}
}
