package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import java.io.Serializable;
import java.util.Iterator;

/**
 * What each task of a stage does with its partition, as one rank of a communicator.
 *
 * <p>Spark sends it to the executors, and calls it there in the thread of the task.
 *
 * @param <T> the type of the rows
 * @param <R> the type of the results
 * @since 0.1
 */
@FunctionalInterface
public interface CommunicatorFunction<T, R> extends Serializable {
    /**
     * Computes the results of a partition. The communicator is closed by the caller, after the results were consumed: an
     * iterator may use it for its elements. Every task must call the same collectives in the same order, also one whose
     * partition is empty.
     *
     * @param communicator this task's rank of the communicator; its rank is the number of the partition
     * @param rows the rows of the partition
     * @return the results
     * @throws Exception whatever goes wrong; all tasks of the stage fail then
     */
    Iterator<R> call(Communicator communicator, Iterator<T> rows) throws Exception;
}
