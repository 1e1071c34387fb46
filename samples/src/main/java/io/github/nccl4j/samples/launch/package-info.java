/** Starts one JVM per rank on this machine, shows their output and ends them together. */
package io.github.nccl4j.samples.launch;
