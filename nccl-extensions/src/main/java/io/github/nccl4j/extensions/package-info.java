/**
 * Tensors that are distributed over the ranks of a communicator: {@link io.github.nccl4j.extensions.Mesh} arranges ranks,
 * {@link io.github.nccl4j.extensions.TensorLayout} places a tensor on them, and {@link io.github.nccl4j.extensions.Reshard}
 * moves it from one layout to another. {@link io.github.nccl4j.extensions.ExpertParallel} sends tokens to experts.
 */
@NullMarked
package io.github.nccl4j.extensions;

import org.jspecify.annotations.NullMarked;
