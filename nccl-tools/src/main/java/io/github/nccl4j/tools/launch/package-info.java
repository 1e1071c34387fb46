/** The launcher of the {@code nccl4j} command: starts one JVM per rank, shows the output and ends all ranks together. */
package io.github.nccl4j.tools.launch;
