/**
 * The functions and constants of NCCL's extensions, as JavaCPP generates them: {@link
 * io.github.nccl4j.extensions.global.nccl_m2n} from {@code nccl_m2n.h} and {@link io.github.nccl4j.extensions.global.nccl_ep}
 * from {@code nccl_ep.h}.
 *
 * <p>The names, parameters and result codes are those of C. No argument is checked: a wrong address or handle can end the
 * process.
 */
package io.github.nccl4j.extensions.global;
