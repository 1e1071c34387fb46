/**
 * The jobs for which people want collectives on the JVM, with PyTorch: one program each, with its own {@code main}, to be copied.
 * Each checks itself against the same computation by one rank.
 */
package io.github.nccl4j.examples;
