/** The store of {@code TcpStore}: its server at rank 0, the connections of the ranks, and their requests. */
package io.github.nccl4j.launch.store;
