/**
 * The {@code nccl4j} command and the numbered, self-verifying samples that it runs.
 *
 * <p>A sample shows one thing of the high-level API in its {@code run} method, which every rank calls with its communicator, made by
 * {@code Sample}. It stays short enough to be copied from.
 */
package io.github.nccl4j.samples;
