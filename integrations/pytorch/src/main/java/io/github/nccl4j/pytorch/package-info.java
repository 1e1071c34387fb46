/**
 * Collectives on tensors of the JavaCPP presets for PyTorch, and data-parallel training of their modules: {@link
 * io.github.nccl4j.pytorch.TensorCollectives} and {@link io.github.nccl4j.pytorch.DistributedDataParallel}.
 *
 * <p>PyTorch itself is not among the dependencies of this artifact: a program chooses its release and its natives.
 */
@NullMarked
package io.github.nccl4j.pytorch;

import org.jspecify.annotations.NullMarked;
