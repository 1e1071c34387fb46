package io.github.nccl4j.tools.analyze;

import io.github.nccl4j.tools.support.HelpIds;
import io.github.nccl4j.tools.support.Printable;
import java.util.List;

/**
 * A result of the analysis. Immutable.
 *
 * @param id the identifier for programs, such as {@code rank.missing}; stable across releases
 * @param ranks the ranks that caused it, as numbers of the job where these are known
 * @param communicator the name or id of the communicator, or empty
 * @param operation the number of the operation at the ranks that wait, or 0
 * @param text the ranks and what they did, in one line
 * @param reason the evidence, in one line
 * @param ofJob false if a rank may be a number of the communicator: it has no record, and so its number in the job is not known
 */
record Finding(
        String id,
        List<Integer> ranks,
        String communicator,
        long operation,
        String text,
        String reason,
        boolean ofJob) {
    Finding {
        ranks = List.copyOf(ranks);
        text = Printable.line(text);
        reason = Printable.line(reason);
    }

    Finding(String id, List<Integer> ranks, String communicator, long operation, String text, String reason) {
        this(id, ranks, communicator, operation, text, reason, true);
    }

    /** The ranks, if they are numbers of the job. */
    List<Integer> jobRanks() {
        return ofJob ? ranks : List.of();
    }

    /** The id of the section of docs/errors.md about this finding. */
    String helpId() {
        return HelpIds.BY_FINDING.get(id);
    }
}
