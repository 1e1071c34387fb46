package io.github.nccl4j.highlevel;

/** Checks of ranges, with messages that say both values. */
final class Bounds {
    private Bounds() {}

    static void check(String offsetName, long offset, long length, String limitName, long limit) {
        if (offset < 0) {
            throw new IndexOutOfBoundsException(offsetName + " must be >= 0: " + offset);
        }
        if (length < 0) {
            throw new IndexOutOfBoundsException("length must be >= 0: " + length);
        }
        // Not offset + length, which may overflow.
        if (offset > limit || length > limit - offset) {
            throw new IndexOutOfBoundsException(
                    offsetName + " + length must be <= " + limitName + ": " + offset + " + " + length + " > " + limit);
        }
    }
}
