package io.github.nccl4j.launch.env;

/**
 * The values of a {@code RankInfo}, unchecked, for the layers below it.
 *
 * @param localRank the number of this rank among those of its host, or {@link #UNKNOWN}
 * @param localWorldSize the number of ranks on this host, or {@link #UNKNOWN}
 */
public record RankValues(
        int rank,
        int worldSize,
        int localRank,
        int localWorldSize,
        String masterAddress,
        int masterPort,
        String job,
        int restart,
        Launcher launcher) {

    public static final int DEFAULT_PORT = 29500;
    public static final int UNKNOWN = -1;

    public boolean hasLocalRank() {
        return localRank != UNKNOWN && localWorldSize != UNKNOWN;
    }

    /** True if all ranks are known to be on one host. */
    public boolean isOnOneHost() {
        return localWorldSize == worldSize;
    }

    /** Describes the local values, such as "1 of 4 on its host". */
    public String localText() {
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
