/**
 * The functions and constants of NCCL's C API, as JavaCPP generates them: {@link io.github.nccl4j.global.nccl} from {@code nccl.h} and
 * {@link io.github.nccl4j.global.nccl_device} from the host part of {@code nccl_device.h}.
 *
 * <p>The names, parameters and result codes are those of C. No argument is checked: a wrong address or handle can end the process.
 * {@link io.github.nccl4j.highlevel} makes the same calls with checks.
 */
package io.github.nccl4j.global;
