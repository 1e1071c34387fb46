/**
 * The rendezvous of ranks on Apache ZooKeeper: {@link io.github.nccl4j.zookeeper.ZooKeeperStore}.
 *
 * <p>The artifact depends on Apache Curator.
 */
@NullMarked
package io.github.nccl4j.zookeeper;

import org.jspecify.annotations.NullMarked;
