package io.github.nccl4j.tools.analyze;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Finds the collective of a communicator that some ranks have called and others have not. */
final class CollectiveProgress {
    /** Ranks of a healthy job are at different operations, too, but not for so long: microseconds. */
    static final long PATIENCE = 1_000_000;

    private final CommunicatorRecords communicator;

    CollectiveProgress(CommunicatorRecords communicator) {
        this.communicator = communicator;
    }

    /** Returns the first collective that not all ranks have called, if ranks wait in it. */
    Optional<Blockage> blockage() {
        long number = Long.MAX_VALUE;
        for (RankRecord record : communicator.records()) {
            // The end of a cut record is not known if its beginning does not contain it.
            boolean known = !record.isCut() || record.header().collectives >= 0;
            number = Math.min(number, known ? record.lastNumber() + 1 : Long.MAX_VALUE);
        }
        if (number == Long.MAX_VALUE) {
            return Optional.empty();
        }
        Optional<Blockage> behind = at(number);
        // If all records end with the same collective, ranks without a record may be missing in it.
        return behind.isPresent() || communicator.absent().isEmpty() ? behind : at(number - 1);
    }

    private Optional<Blockage> at(long number) {
        List<RankRecord> waiting = new ArrayList<>();
        List<Integer> absent = new ArrayList<>();
        for (int rank = 0; rank < communicator.size(); rank++) {
            RankRecord record = communicator.of(rank);
            Call call = record == null ? null : record.at(number);
            if (call != null && !call.isDone()) {
                waiting.add(record);
            } else if (record != null && record.lastNumber() < number && !record.isCut()) {
                absent.add(rank);
            }
        }
        absent.addAll(communicator.absent());
        boolean blocked = waiting.stream().anyMatch(record -> hasWaited(record, record.at(number)));
        return waiting.isEmpty() || absent.isEmpty() || !blocked
                ? Optional.empty()
                : Optional.of(new Blockage(communicator, waiting.get(0).at(number), waiting, absent));
    }

    /** True if a rank has failed, had waited long when its record was written, or may have. */
    static boolean hasWaited(RankRecord record, Call call) {
        long written = record.header().written;
        return record.hasFailed() || call.enqueued() == 0 || written == 0 || written - call.enqueued() >= PATIENCE;
    }
}
