package io.github.nccl4j.spark;

import io.github.nccl4j.highlevel.CommunicatorBuilder;
import java.io.Serializable;

/**
 * Settings of the communicator of a stage. Spark sends them to the executors, where each task applies them.
 *
 * @see NcclRdd#configure
 * @since 0.1
 */
@FunctionalInterface
public interface CommunicatorSettings extends Serializable {
    /**
     * Changes the settings. Device and deadline are set already.
     *
     * @param builder makes the task's rank
     */
    void apply(CommunicatorBuilder builder);
}
