package io.github.nccl4j.tools.analyze;

import java.util.Collection;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** The records of one communicator by rank. */
final class CommunicatorRecords {
    private final String id;
    private final NavigableMap<Integer, RankRecord> byRank = new TreeMap<>();
    private String name = "";
    private int size;
    private int declared;
    private boolean derived;

    CommunicatorRecords(String id) {
        this.id = id;
    }

    /** Adds a record; of two records of a rank, the newer one is kept. Returns the other one, or null. */
    RankRecord add(RankRecord record) {
        RankRecord other = byRank.get(record.rank());
        boolean newer = other == null || other.header().written <= record.header().written;
        if (newer) {
            byRank.put(record.rank(), record);
        }
        size = Math.max(size, Math.max(record.header().size, record.rank() + 1));
        declared = Math.max(declared, record.header().size);
        derived |= record.header().derived;
        if (name.isEmpty()) {
            name = record.header().name;
        }
        return newer ? other : record;
    }

    String id() {
        return id;
    }

    int size() {
        return size;
    }

    /** The name for messages: that from the configuration, or the id. */
    String label() {
        return name.isEmpty() ? id : "'" + name + "'";
    }

    Collection<RankRecord> records() {
        return byRank.values();
    }

    /** The record of a rank, or null. */
    RankRecord of(int rank) {
        return byRank.get(rank);
    }

    /** The ranks without a record, as far as the ranks of the communicator are known. */
    List<Integer> absent() {
        if (declared == 0 && derived) {
            return List.of();
        }
        return IntStream.range(0, size)
                .filter(rank -> !byRank.containsKey(rank))
                .boxed()
                .toList();
    }

    /** The numbers of the collectives that records have, in ascending order. */
    LongStream numbers() {
        return byRank.values().stream()
                .flatMap(record -> record.calls().stream())
                .mapToLong(Call::number)
                .filter(number -> number > 0)
                .sorted()
                .distinct();
    }

    /** True if the communicator was not derived from another one: its ranks are those of the job. */
    boolean isWorld() {
        return !derived;
    }

    boolean hasFailed() {
        return byRank.values().stream().anyMatch(RankRecord::hasFailed);
    }
}
