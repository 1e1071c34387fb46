package io.github.nccl4j.spark;

import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.RendezvousException;
import io.github.nccl4j.launch.RendezvousTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskKilledException;

/**
 * The tasks of a barrier stage as ranks that exchange values by Spark's own messages. A task's rank is its partition.
 *
 * <p>Spark matches the calls of the tasks by their order. Every value therefore travels with its key and the attempt of the
 * stage: a task that makes another call, or that remains of an earlier attempt, is named in an exception.
 *
 * <p>Spark ends the other tasks when one fails, so {@link #abort} does nothing. Threads that call at the same time wait for
 * each other.
 */
final class TaskRendezvous implements Rendezvous {
    private static final char SEPARATOR = '\t';

    private final BarrierTaskContext task;
    private final String stage;
    private final int size;

    TaskRendezvous(BarrierTaskContext task) {
        this.task = task;
        stage = task.stageId() + "." + task.stageAttemptNumber();
        size = task.getTaskInfos().length;
    }

    @Override
    public int rank() {
        return task.partitionId();
    }

    @Override
    public int size() {
        return size;
    }

    /**
     * Returns the values of all tasks to every task.
     *
     * @throws RendezvousTimeoutException if not all tasks make the call in time; Spark does not report which are missing
     * @throws TaskKilledException if Spark ends the task meanwhile
     */
    @Override
    public synchronized List<byte[]> gather(String key, byte[] value, Duration timeout) {
        String own = encode(stage, key, value);
        if (timeout.isNegative()) {
            throw new IllegalArgumentException("timeout must be >= 0: " + TaskWatch.seconds(timeout));
        }
        return decode(own, allGather(key, own, timeout));
    }

    private String[] allGather(String key, String own, Duration timeout) {
        String what = "the " + size + " tasks at '" + key + "'";
        try {
            if (Thread.interrupted()) {
                // Spark looks only while it waits.
                throw new InterruptedException();
            }
            return TaskWatch.awaitExchange(task, what, timeout, () -> task.allGather(own));
        } catch (RuntimeException e) {
            throw e;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RendezvousException("rank " + rank() + " was interrupted while it waited for " + what, e);
        } catch (Exception e) {
            if (TaskWatch.endsSoon(task)) {
                // The exchange fails because Spark ends the stage.
                throw new TaskKilledException("while it waited for " + what);
            }
            throw new RendezvousException("rank " + rank() + " can't wait for " + what + ": " + e.getMessage(), e);
        }
    }

    static String encode(String stage, String key, byte[] value) {
        if (key.isEmpty()) {
            throw new IllegalArgumentException("a key must not be empty");
        }
        if (value.length > LONGEST_VALUE) {
            throw new IllegalArgumentException("a value must have <= " + LONGEST_VALUE + " bytes: " + value.length);
        }
        return stage + SEPARATOR + key + SEPARATOR + Base64.getEncoder().encodeToString(value);
    }

    /**
     * Returns the values of the tasks.
     *
     * @param own the text of this task
     * @param texts the texts of all tasks, by rank
     * @throws RendezvousException if a task makes another call, or is of another attempt
     */
    static List<byte[]> decode(String own, String[] texts) {
        List<byte[]> values = new ArrayList<>();
        for (int rank = 0; rank < texts.length; rank++) {
            String text = texts[rank];
            int end = text.lastIndexOf(SEPARATOR);
            if (end <= text.indexOf(SEPARATOR)) {
                throw new RendezvousException(
                        "rank " + rank + " sent no value: all executors must have the same release of nccl4j");
            }
            if (!text.substring(0, end).equals(own.substring(0, own.lastIndexOf(SEPARATOR)))) {
                throw new RendezvousException("all tasks must make the same call: rank " + rank + " is at "
                        + describe(text) + ", this rank at " + describe(own));
            }
            values.add(Base64.getDecoder().decode(text.substring(end + 1)));
        }
        return values;
    }

    private static String describe(String text) {
        int start = text.indexOf(SEPARATOR);
        return "'" + text.substring(start + 1, text.lastIndexOf(SEPARATOR)) + "' of stage " + text.substring(0, start);
    }

    /** Does nothing: the exchange ends with the stage. */
    @Override
    public void close() {}
}
