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

    /** No process has memory from 2^63 on: such an address is a mistake, and what ends there a wrong count. */
    static void checkAddress(String what, long address, long bytes) {
        if (address < 0 || bytes > Long.MAX_VALUE - address) {
            throw new IllegalArgumentException(what + " and what is there must be below 0x8000000000000000: 0x"
                    + Long.toHexString(address) + " with " + bytes + " bytes");
        }
    }
}
