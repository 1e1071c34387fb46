package io.github.nccl4j.launch.env;

/** The values of a {@code RankInfo}, unchecked, for the layers below it. */
public record RankValues(
        Numbers numbers, String masterAddress, int masterPort, String job, int restart, Launcher launcher) {
    /**
     * The numbers of a rank.
     *
     * @param localRank the number of this rank among those of its host, or {@link #UNKNOWN}
     * @param localWorldSize the number of ranks on this host, or {@link #UNKNOWN}
     */
    public record Numbers(int rank, int worldSize, int localRank, int localWorldSize) {}

    public static final int DEFAULT_PORT = 29500;
    public static final int UNKNOWN = -1;

    public int rank() {
        return numbers.rank;
    }

    public int worldSize() {
        return numbers.worldSize;
    }

    public int localRank() {
        return numbers.localRank;
    }

    public int localWorldSize() {
        return numbers.localWorldSize;
    }

    public boolean hasLocalRank() {
        return numbers.localRank != UNKNOWN && numbers.localWorldSize != UNKNOWN;
    }

    /** True if all ranks are known to be on one host. */
    public boolean isOnOneHost() {
        return numbers.localWorldSize == numbers.worldSize;
    }

    /** Describes the local values, such as "1 of 4 on its host". */
    public String localText() {
        int localRank = numbers.localRank;
        int localWorldSize = numbers.localWorldSize;
        if (hasLocalRank()) {
            return localRank + " of " + localWorldSize + " on its host";
        }
        return localRank == UNKNOWN && localWorldSize == UNKNOWN
                ? "local rank not known yet"
                : localRank == UNKNOWN
                        ? "one of " + localWorldSize + " on its host, local rank not known yet"
                        : "local rank " + localRank + ", number of ranks on its host not known yet";
    }
}
