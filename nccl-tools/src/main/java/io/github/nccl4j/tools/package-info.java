/**
 * The {@code nccl4j} command: it launches programs with one JVM per rank, measures collectives, and examines installations.
 *
 * <p>The samples that {@code run} starts are in a jar of their own, which lists them; nothing here is compiled against them.
 */
package io.github.nccl4j.tools;
