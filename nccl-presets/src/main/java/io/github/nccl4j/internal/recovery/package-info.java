/** Agreement of ranks on the members of a communicator and the source of a state. */
package io.github.nccl4j.internal.recovery;
