package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.spark.BarrierTaskContext;

/**
 * What each task tells the others before they make a communicator, so that what does not fit together is found before NCCL
 * waits for it.
 *
 * @param stage stage and attempt: "3.0"; a task of an earlier attempt that lives on must not get into this communicator
 * @param rank the partition
 * @param library engine and release that the task has loaded
 * @param process the executor's JVM
 * @param device what the task works on
 * @param id of the communicator, from rank 0; else empty
 */
record Announcement(String stage, int rank, String library, String process, String device, String id) {
    private static final String PROCESS = UUID.randomUUID().toString();
    private static final String SEPARATOR = "\t";

    static Announcement of(BarrierTaskContext task, NcclLibrary library, Device device, UniqueId id) {
        return new Announcement(
                task.stageId() + "." + task.stageAttemptNumber(),
                task.partitionId(),
                library.engine() + " " + library.version(),
                PROCESS,
                device.toString(),
                id == null ? "" : Base64.getEncoder().encodeToString(id.toBytes()));
    }

    String encode() {
        return String.join(SEPARATOR, stage, Integer.toString(rank), library, process, device, id);
    }

    static Announcement decode(String text) {
        String[] parts = text.split(SEPARATOR, -1);
        if (parts.length != 6) {
            throw new IllegalStateException(
                    "a task has said " + parts.length + " words instead of 6: do all executors have the same nccl4j?");
        }
        return new Announcement(parts[0], Integer.parseInt(parts[1]), parts[2], parts[3], parts[4], parts[5]);
    }

    /**
     * The id that rank 0 made.
     *
     * @param own what this task said
     * @param texts what all said, by rank
     * @throws IllegalStateException if the tasks can't have one communicator
     */
    static UniqueId idOf(Announcement own, String[] texts) {
        List<Announcement> all = Stream.of(texts).map(Announcement::decode).toList();
        Map<String, Integer> devices = new HashMap<>();
        for (int rank = 0; rank < all.size(); rank++) {
            Announcement one = all.get(rank);
            if (one.rank != rank || !one.stage.equals(own.stage)) {
                throw new IllegalStateException("rank " + own.rank + " of stage " + own.stage + " met rank " + one.rank
                        + " of stage " + one.stage + " in place " + rank);
            }
            if (!one.library.equals(own.library)) {
                throw new IllegalStateException("all tasks must load the same NCCL: rank " + own.rank + " has "
                        + own.library + ", rank " + rank + " has " + one.library);
            }
            if (!one.device.equals(Device.host().toString())) {
                Integer other = devices.putIfAbsent(one.process + one.device, rank);
                if (other != null) {
                    throw new IllegalStateException("ranks " + other + " and " + rank + " are both on " + one.device
                            + " of one executor: set spark.task.resource.gpu.amount=1");
                }
            }
        }
        return UniqueId.of(Base64.getDecoder().decode(all.get(0).id));
    }
}
