/**
 * A communicator for the tasks of a barrier stage of Apache Spark: {@link io.github.nccl4j.spark.NcclRdd}.
 *
 * <p>Spark itself is not among the dependencies of this artifact, since a cluster has it.
 */
@NullMarked
package io.github.nccl4j.spark;

import org.jspecify.annotations.NullMarked;
