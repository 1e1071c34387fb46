package io.github.nccl4j.tools.status;

import java.util.Map;

/**
 * The ids of findings: headings of docs/errors.md. A number is never given to another finding, because pages and reports of other
 * people name it.
 */
public final class HelpIds {
    /** The ids by finding. */
    public static final Map<String, String> BY_FINDING = Map.of(
            "rank.silent", "NCCL4J-0301",
            "rank.unanswered", "NCCL4J-0302",
            "rank.lost", "NCCL4J-0303",
            "rank.absent", "NCCL4J-0304",
            "rank.failed", "NCCL4J-0305",
            "rank.behind", "NCCL4J-0306");

    private HelpIds() {}
}
