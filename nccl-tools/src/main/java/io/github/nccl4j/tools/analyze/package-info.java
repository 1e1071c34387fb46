/** Diagnosis of a failed or slow job from the flight recorder files of its ranks: {@code nccl4j analyze}. */
package io.github.nccl4j.tools.analyze;
