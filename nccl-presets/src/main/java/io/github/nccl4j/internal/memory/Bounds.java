package io.github.nccl4j.internal.memory;

/** Range checks whose messages name both values. */
public final class Bounds {
    /** The lowest address that a process can have. */
    public static final long FIRST_ADDRESS = 0x1000;

    private Bounds() {}

    public static void check(String offsetName, long offset, long length, String limitName, long limit) {
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

    /**
     * Checks that memory can be in the address space of a process, which excludes the first page and addresses from
     * 2^63 on. A violation is mostly an offset without a base, or a wrong count.
     */
    public static void checkAddress(String what, long address, long bytes) {
        if (bytes > 0 && address < FIRST_ADDRESS || address < 0 || bytes > Long.MAX_VALUE - address) {
            throw new IllegalArgumentException(
                    what + " must be the start of memory within 0x1000 to 0x7fffffffffffffff: 0x"
                            + Long.toHexString(address) + " with " + bytes + " bytes");
        }
    }

    /** Returns the range of addresses of memory, for messages: "[0x1000, 0x1040)". */
    public static String range(long address, long bytes) {
        return "[0x" + Long.toHexString(address) + ", 0x" + Long.toHexString(address + bytes) + ")";
    }
}
