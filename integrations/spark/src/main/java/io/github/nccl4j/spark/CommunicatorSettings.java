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
     * Changes the settings. The device and the deadline are set already.
     *
     * @param builder the builder of the task's communicator
     */
    void apply(CommunicatorBuilder builder);
}
