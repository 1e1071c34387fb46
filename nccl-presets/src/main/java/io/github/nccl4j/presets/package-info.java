/**
 * The descriptions of {@code nccl.h} and {@code nccl_device.h} for JavaCPP, from which the classes of {@link io.github.nccl4j.global} are
 * generated. Programs do not use this package. A preset of another library whose header includes {@code nccl.h} inherits
 * {@link io.github.nccl4j.presets.nccl}.
 */
@NullMarked
package io.github.nccl4j.presets;

import org.jspecify.annotations.NullMarked;
