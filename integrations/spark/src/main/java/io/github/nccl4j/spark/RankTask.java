package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.launch.Rendezvous;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
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
 * Function of each task for Spark: joins the communicator, calls the user's function, and ends the communicator with the task.
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
        Device device = TaskDevice.of(library, task.resourcesJMap(), hosts, task.partitionId());
        Rendezvous tasks = new TaskRendezvous(task);
        String loaded = library.engine() + " " + library.version();
        requireOneLibrary(tasks.rank(), tasks.gather("library", loaded.getBytes(StandardCharsets.UTF_8), deadline));

        CommunicatorBuilder builder = Communicator.builder().device(device).deadline(deadline);
        settings.apply(builder);
        // The creation has a deadline, but does not end when Spark ends the task.
        return TaskWatch.await(
                task,
                "the communicator of " + tasks.size() + " ranks",
                ChronoUnit.FOREVER.getDuration(),
                () -> builder.create(tasks),
                Communicator::abort);
    }

    /**
     * Checks that all tasks have loaded the same release.
     *
     * @param rank this rank
     * @param libraries engine and release of each rank
     * @throws IllegalStateException if a rank has another library
     */
    static void requireOneLibrary(int rank, List<byte[]> libraries) {
        List<String> all = libraries.stream()
                .map(bytes -> new String(bytes, StandardCharsets.UTF_8))
                .toList();
        String own = all.get(rank);
        for (int other = 0; other < all.size(); other++) {
            if (!all.get(other).equals(own)) {
                throw new IllegalStateException("all tasks must load the same NCCL: rank " + rank + " has " + own
                        + ", rank " + other + " has " + all.get(other));
            }
        }
    }

    /** Lets a checked exception through Spark's interface, which declares none. */
    @SuppressWarnings("unchecked")
    private static <E extends Exception> E asUnchecked(Exception e) throws E {
        throw (E) e;
    }
}
