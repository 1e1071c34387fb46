/**
 * A communicator for the tasks of a barrier stage of Apache Spark: {@link io.github.nccl4j.spark.NcclRdd}.
 *
 * <p>This artifact does not depend on Spark, since a cluster provides Spark.
 */
@NullMarked
package io.github.nccl4j.spark;

import org.jspecify.annotations.NullMarked;
