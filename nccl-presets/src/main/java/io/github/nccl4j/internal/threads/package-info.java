/** The gate of a communicator, daemon threads, and support of virtual threads. */
package io.github.nccl4j.internal.threads;
