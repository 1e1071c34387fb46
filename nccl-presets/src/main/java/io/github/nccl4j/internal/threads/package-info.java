/** The gate of a communicator, waits with a timeout, and support of virtual threads. */
package io.github.nccl4j.internal.threads;
