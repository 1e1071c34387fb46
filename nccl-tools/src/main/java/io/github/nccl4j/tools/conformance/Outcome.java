package io.github.nccl4j.tools.conformance;

/**
 * The outcome of one check.
 *
 * @param subject the row of the table
 * @param failure the failure, or null
 * @param skipped the reason why it was not run, or null
 */
record Outcome(String subject, String failure, String skipped) {
    static Outcome passed(String subject) {
        return new Outcome(subject, null, null);
    }

    static Outcome failed(String subject, String failure) {
        return new Outcome(subject, failure, null);
    }

    static Outcome skipped(String subject, String reason) {
        return new Outcome(subject, null, reason);
    }

    /** Merges the outcomes of two ranks, which have run the same check. */
    Outcome and(Outcome other) {
        if (!subject.equals(other.subject)) {
            throw new IllegalArgumentException("ranks ran different checks: " + subject + ", " + other.subject);
        }
        return failure == null ? other : this;
    }
}
