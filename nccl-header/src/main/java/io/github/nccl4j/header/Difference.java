package io.github.nccl4j.header;

/**
 * Something that two headers don't agree on.
 *
 * @param kind whether it is a fault
 * @param text what it is, in one line
 */
public record Difference(Kind kind, String text) {
    /** What a difference means. */
    public enum Kind {
        /** Our header is wrong, or the other one is not of NCCL. */
        DIFFERENT("different"),
        /** The other header is of a newer release than ours describes, and adds to it. */
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
