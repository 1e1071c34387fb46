package io.github.nccl4j.ras;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * A defect of NCCL by which a question to its RAS service may crash the process that answers.
 *
 * @since 0.1
 */
public enum RasDefect {
    /** The answer reads data that a communicator gets only during its creation. */
    UNFINISHED_COMMUNICATOR(22403, 22702, "while a communicator is being created", "nccl#1669, nccl#1718"),
    /** The answer is read from a wrong address if a communicator has missing ranks. */
    MISSING_RANKS(22403, 22901, "if ranks are missing", "nccl#1762"),
    /** The RAS thread crashes when processes join or leave, even if nobody asks. */
    CHANGED_PROCESSES(22707, 22707, "when processes join or leave", "nccl#1996"),
    /**
     * The answer contains memory that was never written. Reported for 2.29.7; the sources of all releases in this range have it,
     * those of later releases were not examined.
     */
    UNWRITTEN_STATUS(22703, 23007, "while a communicator is being created", "nccl#2346");

    private final int first;
    private final int last;
    private final String condition;
    private final String reports;

    RasDefect(int first, int last, String condition, String reports) {
        this.first = first;
        this.last = last;
        this.condition = condition;
        this.reports = reports;
    }

    /**
     * Returns the defects of a release.
     *
     * @param version the release, as {@code ncclGetVersion} returns it: 22803 for 2.28.3
     * @return the defects; empty if none is known
     */
    public static List<RasDefect> of(int version) {
        return Arrays.stream(values())
                .filter(defect -> version >= defect.first && version <= defect.last)
                .toList();
    }

    /**
     * Returns the defects of a release in words.
     *
     * @param version the release, as {@code ncclGetVersion} returns it
     * @return a sentence such as "NCCL 2.29.7 may crash the job if it is asked while a communicator is being created
     *     (nccl#2346)"; empty if no defect is known
     */
    public static String warning(int version) {
        List<RasDefect> defects = of(version);
        return defects.isEmpty()
                ? ""
                : "NCCL " + version / 10_000 + "." + version / 100 % 100 + "." + version % 100
                        + " may crash the job if it is asked "
                        + defects.stream().map(RasDefect::description).collect(Collectors.joining(", or "));
    }

    /**
     * {@return the condition of a crash and its reports, such as "while a communicator is being created (nccl#1669,
     * nccl#1718)"}
     */
    public String description() {
        return condition + " (" + reports + ")";
    }
}
