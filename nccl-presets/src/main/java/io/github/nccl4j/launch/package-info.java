/**
 * The start of a program with several ranks: its processes find their ranks and exchange values outside NCCL.
 *
 * <ul>
 *   <li>{@link io.github.nccl4j.launch.RankInfo}: the rank of this process, from system properties or from the environment of
 *       torchrun, Open MPI, MPICH, Slurm, Kubernetes and other launchers.
 *   <li>{@link io.github.nccl4j.launch.Rendezvous}: exchange of small values between ranks, such as the unique id of a
 *       communicator.
 *   <li>{@link io.github.nccl4j.launch.Store}: a rendezvous with keys, which knows the processes of each rank.
 *   <li>{@link io.github.nccl4j.launch.TcpStore}: a store over TCP, with a server in the process of rank 0 or in a
 *       process of its own.
 * </ul>
 *
 * <p>This package uses no NCCL, CUDA or native code.
 */
@NullMarked
package io.github.nccl4j.launch;

import org.jspecify.annotations.NullMarked;
