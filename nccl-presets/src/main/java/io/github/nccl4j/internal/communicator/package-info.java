/** The native communicator: its creation, state, calls, failures, watchdog, streams and resources; its ranks in this process, and queries of the others. */
package io.github.nccl4j.internal.communicator;
