package io.github.nccl4j.tools.launch;

/**
 * The role of a process that a launcher starts. Immutable.
 *
 * @param number the number of the rank, or of the spare
 * @param isSpare true if the process waits to take the place of a rank
 */
record Role(int number, boolean isSpare) {

    static Role rank(int rank) {
        return new Role(rank, false);
    }

    static Role spare(int number) {
        return new Role(number, true);
    }

    String describe() {
        return (isSpare ? "spare " : "rank ") + number;
    }

    /** The prefix of each line of its output. */
    String prefix() {
        return "[" + (isSpare ? "spare " : "") + number + "] ";
    }
}
