/**
 * The {@code nccl4j} command and the numbered, self-verifying samples that it runs.
 *
 * <p>Each sample demonstrates one feature of the high-level API in its {@code run} method. Every rank calls it with the
 * communicator that {@code Sample} creates. Samples are short, so that you can copy from them.
 */
package io.github.nccl4j.tools;
