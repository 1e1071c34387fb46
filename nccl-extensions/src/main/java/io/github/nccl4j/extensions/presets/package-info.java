/**
 * The descriptions of {@code nccl_m2n.h} and {@code nccl_ep.h} for JavaCPP, from which the classes of {@link
 * io.github.nccl4j.extensions.global} are generated. Programs do not use this package.
 */
@NullMarked
package io.github.nccl4j.extensions.presets;

import org.jspecify.annotations.NullMarked;
