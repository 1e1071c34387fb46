package io.github.nccl4j.samples.doctor;

import java.util.List;
import java.util.Locale;

/**
 * One thing that was looked at, and what it means.
 *
 * @param id its name for programs, such as {@code library.missing}; the same in every release
 * @param level how bad it is
 * @param text what was found, in one line
 * @param meaning what follows from it; empty for what is as it should be
 * @param advice what to do about it; empty where there is nothing to do
 * @param details further lines, such as the places that were tried
 */
public record Finding(String id, Level level, String text, String meaning, String advice, List<String> details) {

    /** How bad a finding is. */
    public enum Level {
        /** As it should be, or plain information. */
        OK,

        /** NCCL works, but slower than it could, or not in every case. */
        WARNING,

        /** NCCL does not work here. */
        PROBLEM;

        /** The level as reports spell it. */
        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
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

    /** The same with details. */
    Finding with(List<String> lines) {
        return new Finding(id, level, text, meaning, advice, List.copyOf(lines));
    }
}
