/**
 * The structs and handles of {@code nccl.h}, as JavaCPP generates them, for the functions of {@link io.github.nccl4j.global.nccl}.
 *
 * <p>{@code new ncclConfig_t()}, {@code new ncclCollConfig_t()} and {@code new ncclSimInfo_t()} are initialized as NCCL requires. The
 * memory of a struct is freed when it is closed or unreachable; NCCL owns the objects behind handles such as
 * {@link io.github.nccl4j.nccl.ncclComm}.
 */
package io.github.nccl4j.nccl;
