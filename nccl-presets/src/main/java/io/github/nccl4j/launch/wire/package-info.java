/** The data that ranks exchange at a rendezvous: checked keys and values, frames and messages. */
package io.github.nccl4j.launch.wire;
