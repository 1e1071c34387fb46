package io.github.nccl4j.samples.support;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Who this process is among the ranks, as torchrun and the nccl4j launcher tell it in the environment.
 *
 * @param rank 0 to {@code worldSize - 1}
 * @param worldSize the number of ranks
 * @param localRank this rank's number on its host
 * @param localWorldSize the number of ranks on this host
 * @param masterAddress the host of rank 0
 * @param masterPort the port at which rank 0 can be reached
 */
public record RankInfo(
        int rank, int worldSize, int localRank, int localWorldSize, String masterAddress, int masterPort) {

    private static final int LARGEST_PORT = 65535;
    private static final List<String> NAMES =
            List.of("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT");

    /**
     * Reads the variables.
     *
     * @param environment usually {@link System#getenv()}
     * @return empty if neither RANK nor WORLD_SIZE nor LOCAL_RANK is set: no launcher started this process
     * @throws IllegalArgumentException if some but not all variables are set, or one has no sensible value; the message names it
     */
    public static Optional<RankInfo> from(Map<String, String> environment) {
        if (NAMES.subList(0, 3).stream().noneMatch(environment::containsKey)) {
            return Optional.empty();
        }
        List<String> missing = NAMES.stream()
                .filter(name -> environment.getOrDefault(name, "").isBlank())
                .toList();
        if (!missing.isEmpty()) {
            throw new IllegalArgumentException("started as one rank of an outer launcher, but the environment lacks "
                    + String.join(", ", missing) + " (needed: " + String.join(", ", NAMES) + ")");
        }
        int world = number(environment, "WORLD_SIZE", 1, Integer.MAX_VALUE);
        int localWorld = number(environment, "LOCAL_WORLD_SIZE", 1, world);
        return Optional.of(new RankInfo(
                number(environment, "RANK", 0, world - 1),
                world,
                number(environment, "LOCAL_RANK", 0, localWorld - 1),
                localWorld,
                environment.get("MASTER_ADDR").strip(),
                storePort(environment)));
    }

    /** Under torchrun the agent's own store usually holds MASTER_PORT: the next port is ours then. */
    private static int storePort(Map<String, String> environment) {
        boolean taken = "True".equalsIgnoreCase(environment.get("TORCHELASTIC_USE_AGENT_STORE"));
        return number(environment, "MASTER_PORT", 1, taken ? LARGEST_PORT - 1 : LARGEST_PORT) + (taken ? 1 : 0);
    }

    private static int number(Map<String, String> environment, String name, int least, int most) {
        String text = environment.get(name).strip();
        try {
            int value = Integer.parseInt(text);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException notANumber) {
            // Same message as for a number out of range.
        }
        throw new IllegalArgumentException(
                name + " in the environment must be a number from " + least + " to " + most + ": " + text);
    }
}
