package io.github.nccl4j.launch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Finds the local ranks of ranks whose launcher does not tell them, from the hosts that they are on. */
final class LocalRanks {
    private static final String KEY = "nccl4j-hosts";
    private static final String HOST_ID = "NCCL_HOSTID";
    private static final int LONGEST_HOST_ID = 1024;
    private static final Path NAME = Path.of("/proc/sys/kernel/hostname");
    private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");

    private LocalRanks() {}

    /** What a rank knows of its place: its host, by an identity and in words, and what its launcher has told. */
    private record Place(String host, String hostName, String source, int localRank, int localWorldSize) {
        byte[] bytes() {
            return new Wire.Frame()
                    .text(host)
                    .text(hostName)
                    .text(source)
                    .number32(localRank)
                    .number32(localWorldSize)
                    .toBytes();
        }

        static Place of(byte[] bytes, int rank) {
            try {
                return Wire.read(
                        ByteBuffer.wrap(bytes),
                        frame -> new Place(
                                Wire.text(frame), Wire.text(frame), Wire.text(frame), frame.getInt(), frame.getInt()));
            } catch (IOException other) {
                throw new RendezvousException("rank " + rank + " did not say which host it is on", other);
            }
        }
    }

    static RankInfo find(Rendezvous rendezvous, RankInfo self, Duration timeout) {
        if (self.rank() != rendezvous.rank() || self.worldSize() != rendezvous.size()) {
            throw new IllegalArgumentException("self must be this rank of the rendezvous, rank " + rendezvous.rank()
                    + " of " + rendezvous.size() + ": " + self);
        }
        if (self.hasLocalRank()) {
            return self;
        }
        Place own = own(rendezvous, self);
        List<byte[]> all = rendezvous.gather(KEY, own.bytes(), timeout);
        List<Place> places = new ArrayList<>();
        Map<String, List<Integer>> hosts = new LinkedHashMap<>();
        for (int rank = 0; rank < all.size(); rank++) {
            Place place = Place.of(all.get(rank), rank);
            places.add(place);
            hosts.computeIfAbsent(place.host, host -> new ArrayList<>()).add(rank);
        }
        // Every rank looks at every host, so that all come to the same end.
        Map<Integer, Integer> localRanks = new HashMap<>();
        hosts.values().forEach(ranks -> localRanks.putAll(number(ranks, places)));
        return self.at(localRanks.get(self.rank()), hosts.get(own.host).size());
    }

    /** The kernel's names: of the container if it has one of its own, and of the boot, which tells hosts of one name apart. */
    private static Place own(Rendezvous others, RankInfo self) {
        String given = System.getenv(HOST_ID);
        String source = self.source().toString();
        if (given != null && !given.isBlank()) {
            String host = HOST_ID + "=" + given.substring(0, Math.min(given.length(), LONGEST_HOST_ID));
            return new Place(host, host, source, self.localRank(), self.localWorldSize());
        }
        try {
            String name = Files.readString(NAME).strip();
            return new Place(name + " " + boot(), name, source, self.localRank(), self.localWorldSize());
        } catch (IOException nameless) {
            String reason = "rank " + self.rank() + " can't tell which host it is on: " + nameless + "; set " + HOST_ID;
            others.abort(reason);
            throw new RendezvousException(reason, nameless);
        }
    }

    private static String boot() {
        try {
            return Files.readString(BOOT).strip();
        } catch (IOException hidden) {
            // Some sandboxes hide it; the name is all that is left then.
            return "";
        }
    }

    /** The local ranks of the ranks of a host: those that were told, and for the others the numbers that are free. */
    private static Map<Integer, Integer> number(List<Integer> ranks, List<Place> places) {
        Map<Integer, Integer> owners = new HashMap<>();
        for (int rank : ranks) {
            Place place = places.get(rank);
            String told = place.source + " told rank " + rank + " that it ";
            String found = "host " + place.hostName + " has " + ranks.size() + ": " + MessageText.ranks(ranks);
            if (place.localWorldSize != RankInfo.UNKNOWN && place.localWorldSize != ranks.size()) {
                throw new RendezvousException(
                        told + "is one of " + place.localWorldSize + " ranks on its host, but " + found);
            }
            if (place.localRank == RankInfo.UNKNOWN) {
                continue;
            }
            if (place.localRank >= ranks.size()) {
                throw new RendezvousException(told + "has local rank " + place.localRank + ", but " + found);
            }
            Integer other = owners.put(place.localRank, rank);
            if (other != null) {
                throw new RendezvousException(told + "has local rank " + place.localRank + ", and rank " + other
                        + " was told the same; " + found);
            }
        }
        Map<Integer, Integer> localRanks = new HashMap<>();
        owners.forEach((localRank, rank) -> localRanks.put(rank, localRank));
        int next = 0;
        for (int rank : ranks) {
            if (places.get(rank).localRank == RankInfo.UNKNOWN) {
                while (owners.containsKey(next)) {
                    next++;
                }
                localRanks.put(rank, next++);
            }
        }
        return localRanks;
    }
}
