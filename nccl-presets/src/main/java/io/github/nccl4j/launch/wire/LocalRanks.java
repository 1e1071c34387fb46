package io.github.nccl4j.launch.wire;

import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.env.RankValues;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Assigns local ranks to ranks whose launcher does not provide them, from the hosts of all ranks. */
public final class LocalRanks {
    public static final String KEY = "nccl4j-hosts";
    private static final String HOST_ID = "NCCL_HOSTID";
    private static final int MAX_HOST_ID_CHARS = 1024;
    private static final Path NAME = Path.of("/proc/sys/kernel/hostname");
    private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");

    private LocalRanks() {}

    /**
     * Message of a rank to the others: the identity of its host, the host's name for messages, and the local values from its
     * launcher.
     */
    private record HostEntry(String host, String hostName, String source, int localRank, int localWorldSize) {
        /**
         * The entry of this rank. The host's identity is its name and the id of the kernel's boot, which distinguishes hosts of the
         * same name. A container with a host name of its own is a host.
         */
        static HostEntry of(RankValues self) {
            String given = System.getenv(HOST_ID);
            String source = self.launcher().toString();
            if (given != null && !given.isBlank()) {
                String host = HOST_ID + "=" + given.substring(0, Math.min(given.length(), MAX_HOST_ID_CHARS));
                return new HostEntry(host, host, source, self.localRank(), self.localWorldSize());
            }
            try {
                String name = Files.readString(NAME).strip();
                return new HostEntry(name + " " + boot(), name, source, self.localRank(), self.localWorldSize());
            } catch (IOException nameless) {
                String reason =
                        "rank " + self.rank() + " can't read the name of its host: " + nameless + "; set " + HOST_ID;
                throw new RendezvousException(reason, nameless);
            }
        }

        byte[] bytes() {
            return new Wire.Frame()
                    .text(host)
                    .text(hostName)
                    .text(source)
                    .number32(localRank)
                    .number32(localWorldSize)
                    .toBytes();
        }

        static HostEntry of(byte[] bytes, int rank) {
            try {
                return Wire.read(
                        ByteBuffer.wrap(bytes),
                        frame -> new HostEntry(
                                Wire.text(frame), Wire.text(frame), Wire.text(frame), frame.getInt(), frame.getInt()));
            } catch (IOException invalid) {
                throw new RendezvousException("rank " + rank + " sent an invalid host entry", invalid);
            }
        }
    }

    /** The local rank of a rank and the number of ranks on its host. */
    public record Location(int localRank, int localWorldSize) {}

    /**
     * Returns the message of a rank to the others.
     *
     * @throws RendezvousException if the name of this host can't be read
     */
    public static byte[] entry(RankValues self) {
        return HostEntry.of(self).bytes();
    }

    /** Locates a rank by the entries of all ranks. */
    public static Location locate(int self, List<byte[]> all) {
        List<HostEntry> entries = new ArrayList<>();
        Map<String, List<Integer>> hosts = new LinkedHashMap<>();
        for (int rank = 0; rank < all.size(); rank++) {
            HostEntry entry = HostEntry.of(all.get(rank), rank);
            entries.add(entry);
            hosts.computeIfAbsent(entry.host, host -> new ArrayList<>()).add(rank);
        }
        // Every rank checks every host, so that all ranks fail if one does.
        Map<Integer, Integer> localRanks = new HashMap<>();
        hosts.values().forEach(ranks -> localRanks.putAll(assign(ranks, entries)));
        String host = entries.get(self).host;
        return new Location(localRanks.get(self), hosts.get(host).size());
    }

    private static String boot() {
        try {
            return Files.readString(BOOT).strip();
        } catch (IOException hidden) {
            // Some sandboxes hide the boot id; only the name identifies the host then.
            return "";
        }
    }

    /** Returns the local ranks of the ranks of one host: those of the launcher, and free numbers for the other ranks. */
    private static Map<Integer, Integer> assign(List<Integer> ranks, List<HostEntry> entries) {
        Map<Integer, Integer> owners = new HashMap<>();
        for (int rank : ranks) {
            HostEntry entry = entries.get(rank);
            String actual = "; host " + entry.hostName + " has " + MessageText.ranks(ranks);
            if (entry.localWorldSize != RankValues.UNKNOWN && entry.localWorldSize != ranks.size()) {
                throw new RendezvousException("the local world size of rank " + rank + " must be " + ranks.size() + ": "
                        + entry.source + " set " + entry.localWorldSize + actual);
            }
            if (entry.localRank == RankValues.UNKNOWN) {
                continue;
            }
            if (entry.localRank >= ranks.size()) {
                throw new RendezvousException("the local rank of rank " + rank + " must be < " + ranks.size() + ": "
                        + entry.source + " set " + entry.localRank + actual);
            }
            Integer other = owners.put(entry.localRank, rank);
            if (other != null) {
                throw new RendezvousException("local ranks on a host must be distinct: " + entry.source
                        + " set local rank " + entry.localRank + " for ranks " + other + " and " + rank + actual);
            }
        }
        Map<Integer, Integer> localRanks = new HashMap<>();
        owners.forEach((localRank, rank) -> localRanks.put(rank, localRank));
        int next = 0;
        for (int rank : ranks) {
            if (entries.get(rank).localRank == RankValues.UNKNOWN) {
                while (owners.containsKey(next)) {
                    next++;
                }
                localRanks.put(rank, next++);
            }
        }
        return localRanks;
    }
}
