/** The structs of {@code nccl_ep.h}, as JavaCPP generates them, for {@link io.github.nccl4j.extensions.global.nccl_ep}. */
package io.github.nccl4j.extensions.nccl_ep;
