/** The structs of {@code nccl_m2n.h}, as JavaCPP generates them, for {@link io.github.nccl4j.extensions.global.nccl_m2n}. */
package io.github.nccl4j.extensions.nccl_m2n;
