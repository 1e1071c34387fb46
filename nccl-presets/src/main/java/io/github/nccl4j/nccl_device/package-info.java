/**
 * The structs of the host part of {@code nccl_device.h}, as JavaCPP generates them, for the functions of
 * {@link io.github.nccl4j.global.nccl_device}.
 *
 * <p>A program fills these structs in or gets them from these functions, and passes them to its own kernels.
 */
package io.github.nccl4j.nccl_device;
