/**
 * Collectives on tensors of the JavaCPP presets for PyTorch: {@link
 * io.github.nccl4j.pytorch.TensorCollectives}.
 *
 * <p>PyTorch itself is not among the dependencies of this artifact: a program chooses its release and its natives.
 */
@NullMarked
package io.github.nccl4j.pytorch;

import org.jspecify.annotations.NullMarked;
