package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.tools.support.HelpIds;
import java.util.List;
import java.util.Locale;

/**
 * The result of a check. Immutable.
 *
 * @param id the identifier for programs, such as {@code library.missing}; stable across releases
 * @param level the severity
 * @param text the finding, in one line
 * @param meaning the consequence; empty for {@link Level#OK}
 * @param advice the remedy; empty for {@link Level#OK}
 * @param details additional lines, such as the places that were searched
 */
public record Finding(String id, Level level, String text, String meaning, String advice, List<String> details) {

    /** The severity of a finding. */
    public enum Level {
        /** No problem, or information. */
        OK,

        /** NCCL works, but slower than possible or not in every case. */
        WARNING,

        /** NCCL does not work here. */
        PROBLEM;

        /** The level as it appears in reports. */
        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** {@return the id of the section of docs/errors.md about this finding, such as NCCL4J-0101; empty for {@link Level#OK}} */
    public String helpId() {
        return level == Level.OK ? "" : HelpIds.BY_FINDING.getOrDefault(id, "");
    }

    static Finding ok(String id, String text) {
        return new Finding(id, Level.OK, text, "", "", List.of());
    }

    static Finding warning(String id, String text, String meaning, String advice) {
        return new Finding(id, Level.WARNING, text, meaning, advice, List.of());
    }

    static Finding problem(String id, String text, String meaning, String advice) {
        return new Finding(id, Level.PROBLEM, text, meaning, advice, List.of());
    }

    /** A copy of this finding with details. */
    Finding with(List<String> lines) {
        return new Finding(id, level, text, meaning, advice, List.copyOf(lines));
    }
}
