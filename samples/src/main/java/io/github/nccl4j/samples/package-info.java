/** The {@code nccl4j} command and the numbered, self-verifying samples that it runs. */
package io.github.nccl4j.samples;
