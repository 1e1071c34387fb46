package io.github.nccl4j.highlevel;

/**
 * A release of NCCL, such as 2.28.3. Releases are ordered by age.
 *
 * <p>Instances are immutable.
 *
 * @param major the first number
 * @param minor the second number
 * @param patch the third number
 * @since 0.1
 */
public record Version(int major, int minor, int patch) implements Comparable<Version> {
    /**
     * Returns the release of a version code.
     *
     * @param code the code from {@code ncclGetVersion}: 22803 for 2.28.3, 2708 for 2.7.8
     * @return the release
     * @throws IllegalArgumentException if the code is negative
     */
    public static Version of(int code) {
        if (code < 0) {
            throw new IllegalArgumentException("a version code must be >= 0: " + code);
        }
        // The minor number has had two digits since 2.9.
        int thousands = code < 10000 ? 1000 : 10000;
        return new Version(code / thousands, code % thousands / 100, code % 100);
    }

    /**
     * Returns true if this release is the same as another release or newer.
     *
     * @param other the other release
     * @return true if the other release is the same or older
     */
    public boolean isAtLeast(Version other) {
        return compareTo(other) >= 0;
    }

    @Override
    public int compareTo(Version other) {
        int order = Integer.compare(major, other.major);
        order = order != 0 ? order : Integer.compare(minor, other.minor);
        return order != 0 ? order : Integer.compare(patch, other.patch);
    }

    /** Returns the usual form: "2.28.3". */
    @Override
    public String toString() {
        return major + "." + minor + "." + patch;
    }
}
