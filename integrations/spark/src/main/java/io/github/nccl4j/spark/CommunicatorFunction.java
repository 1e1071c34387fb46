package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.Communicator;
import java.io.Serializable;
import java.util.Iterator;

/**
 * The function that each task of a stage applies to its partition, as one rank of a communicator.
 *
 * <p>Spark sends the function to the executors, and calls it there in the thread of the task.
 *
 * @param <T> the type of the rows
 * @param <R> the type of the results
 * @since 0.1
 */
@FunctionalInterface
public interface CommunicatorFunction<T, R> extends Serializable {
    /**
     * Computes the results of a partition. The caller closes the communicator when the results have been consumed; the
     * returned iterator may use the communicator. Every task must call the same collectives in the same order,
     * including tasks whose partition is empty.
     *
     * @param communicator this task's rank of the communicator; its rank is the number of the partition
     * @param rows the rows of the partition
     * @return the results
     * @throws Exception any failure; all tasks of the stage fail then
     */
    Iterator<R> call(Communicator communicator, Iterator<T> rows) throws Exception;
}
