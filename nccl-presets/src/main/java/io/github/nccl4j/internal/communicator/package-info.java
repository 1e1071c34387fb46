/** The life of a communicator: its state, what it owns, its other ranks in this process, and queries of remote ranks. */
package io.github.nccl4j.internal.communicator;
