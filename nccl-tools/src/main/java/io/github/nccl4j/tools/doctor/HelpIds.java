package io.github.nccl4j.tools.doctor;

import java.util.Map;

/**
 * The ids of findings that are no success: headings of docs/errors.md, which says what to try. A number is never given to another
 * finding, because pages and reports of other people name it.
 */
final class HelpIds {
    static final Map<String, String> BY_FINDING = Map.ofEntries(
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
            Map.entry("self-test.interrupted", "NCCL4J-0132"));

    private HelpIds() {}
}
