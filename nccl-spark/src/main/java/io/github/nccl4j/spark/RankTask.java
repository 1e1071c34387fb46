package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import java.io.Serializable;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.spark.BarrierTaskContext;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * What Spark runs in each task: joins the communicator, calls the function, and ends the communicator with the task.
 *
 * @param <T> the type of the rows
 * @param <R> the type of the results
 */
final class RankTask<T, R> extends AbstractFunction1<Iterator<T>, Iterator<R>> implements Serializable {
    private static final long serialVersionUID = 1L;

    private final CommunicatorFunction<T, R> function;
    private final CommunicatorSettings settings;
    private final Duration deadline;

    RankTask(CommunicatorFunction<T, R> function, CommunicatorSettings settings, Duration deadline) {
        this.function = function;
        this.settings = settings;
        this.deadline = deadline;
    }

    @Override
    public Iterator<R> apply(Iterator<T> rows) {
        BarrierTaskContext task = BarrierTaskContext.get();
        try {
            Communicator communicator = join(task);
            TaskWatch.endWithTask(task, communicator);
            return CollectionConverters.asScala(Objects.requireNonNull(
                    function.call(communicator, CollectionConverters.asJava(rows)), "the function's result"));
        } catch (Exception e) {
            throw RankTask.<RuntimeException>asUnchecked(e);
        }
    }

    private Communicator join(BarrierTaskContext task) throws Exception {
        NcclLibrary library = NcclLibrary.get();
        List<String> hosts = Arrays.stream(task.getTaskInfos())
                .map(info -> TaskDevice.hostOf(info.address()))
                .toList();
        int rank = task.partitionId();
        int size = hosts.size();
        Device device = TaskDevice.of(library, task.resourcesJMap(), hosts, rank);
        UniqueId made = rank == 0 ? UniqueId.create() : null;
        Announcement own = Announcement.of(task, library, device, made);

        // Spark's own limit is a year, unless spark.barrier.sync.timeout sets one.
        String[] all = TaskWatch.await(
                task, "the " + size + " tasks to meet", deadline, () -> task.allGather(own.encode()), ignored -> {});
        UniqueId id = Announcement.idOf(own, all);

        CommunicatorBuilder builder = Communicator.builder().device(device).deadline(deadline);
        settings.apply(builder);
        // It has a deadline of its own, but knows nothing of tasks that are to end.
        return TaskWatch.await(
                task,
                "the communicator of " + size + " ranks",
                ChronoUnit.FOREVER.getDuration(),
                () -> builder.create(id, rank, size),
                Communicator::abort);
    }

    /** Lets a checked exception through Spark's interface, which declares none. */
    @SuppressWarnings("unchecked")
    private static <E extends Exception> E asUnchecked(Exception e) throws E {
        throw (E) e;
    }
}
