package io.github.nccl4j.tools.support;

import java.util.Map;

/**
 * The ids of findings other than success, with which the headings of docs/errors.md begin. A number is never reused
 * for another finding, because pages and reports of other people name it.
 */
public final class HelpIds {
    /** The ids by finding. */
    public static final Map<String, String> BY_FINDING = Map.ofEntries(
            // doctor
            Map.entry("library.missing", "NCCL4J-0101"),
            Map.entry("library.unusable", "NCCL4J-0102"),
            Map.entry("library.crash", "NCCL4J-0103"),
            Map.entry("library.copies", "NCCL4J-0104"),
            Map.entry("library.preload", "NCCL4J-0105"),
            Map.entry("process.unreadable", "NCCL4J-0106"),
            Map.entry("gpu.none", "NCCL4J-0107"),
            Map.entry("gpu.crash", "NCCL4J-0108"),
            Map.entry("gpu.runtime", "NCCL4J-0109"),
            Map.entry("gpu.cuda", "NCCL4J-0110"),
            Map.entry("gpu.links", "NCCL4J-0111"),
            Map.entry("gpu.peer", "NCCL4J-0112"),
            Map.entry("rdma.port", "NCCL4J-0113"),
            Map.entry("rdma.disabled", "NCCL4J-0114"),
            Map.entry("rdma.verbs", "NCCL4J-0115"),
            Map.entry("rdma.library", "NCCL4J-0116"),
            Map.entry("rdma.memlock", "NCCL4J-0117"),
            Map.entry("rdma.gpudirect", "NCCL4J-0118"),
            Map.entry("rdma.selection", "NCCL4J-0119"),
            Map.entry("network.none", "NCCL4J-0120"),
            Map.entry("network.selection", "NCCL4J-0121"),
            Map.entry("network.loopback", "NCCL4J-0122"),
            Map.entry("network.bridge", "NCCL4J-0123"),
            Map.entry("network.several", "NCCL4J-0124"),
            Map.entry("network.comm-id", "NCCL4J-0125"),
            Map.entry("limits.shm", "NCCL4J-0126"),
            Map.entry("limits.files", "NCCL4J-0127"),
            Map.entry("launcher.incomplete", "NCCL4J-0128"),
            Map.entry("self-test.failed", "NCCL4J-0129"),
            Map.entry("self-test.late", "NCCL4J-0130"),
            Map.entry("self-test.start", "NCCL4J-0131"),
            Map.entry("self-test.interrupted", "NCCL4J-0132"),
            Map.entry("diagnostics.reported", "NCCL4J-0133"),
            Map.entry("settings.native-access", "NCCL4J-0134"),
            Map.entry("library.arm64", "NCCL4J-0135"),
            Map.entry("library.shadowed", "NCCL4J-0136"),
            Map.entry("peer.unreachable", "NCCL4J-0137"),
            Map.entry("peer.connection", "NCCL4J-0138"),
            Map.entry("peer.transfer", "NCCL4J-0139"),
            Map.entry("peer.interface", "NCCL4J-0140"),
            Map.entry("peer.mtu", "NCCL4J-0141"),
            // analyze
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
            Map.entry("transfer.order", "NCCL4J-0216"),
            // status
            Map.entry("rank.silent", "NCCL4J-0301"),
            Map.entry("rank.unanswered", "NCCL4J-0302"),
            Map.entry("rank.lost", "NCCL4J-0303"),
            Map.entry("rank.absent", "NCCL4J-0304"),
            Map.entry("rank.failed", "NCCL4J-0305"),
            Map.entry("rank.behind", "NCCL4J-0306"));

    private HelpIds() {}
}
