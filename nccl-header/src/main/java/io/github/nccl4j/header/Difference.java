package io.github.nccl4j.header;

/**
 * A difference between two headers. Immutable.
 *
 * @param kind the kind of difference
 * @param text its description, in one line
 */
public record Difference(Kind kind, String text) {
    /** The kinds of differences. */
    public enum Kind {
        /** Our header is wrong, or the other header is not one of NCCL. */
        DIFFERENT("different"),
        /** An addition in the header of a newer release than ours. */
        NEWER("newer than nccl4j");

        private final String words;

        Kind(String words) {
            this.words = words;
        }
    }

    @Override
    public String toString() {
        return kind.words + ": " + text;
    }
}
