/**
 * How the ranks of a program find out who they are, and find one another.
 *
 * <ul>
 *   <li>{@link io.github.nccl4j.launch.RankInfo}: this process's rank, as torchrun, Open MPI, MPICH, Slurm, Kubernetes, other
 *       launchers or system properties tell it.
 *   <li>{@link io.github.nccl4j.launch.Rendezvous}: what the ranks tell each other before there is a communicator, its
 *       unique id above all.
 *   <li>{@link io.github.nccl4j.launch.TcpStore}: the rendezvous that needs nothing but the network, kept by rank 0.
 * </ul>
 *
 * <p>Nothing here needs NCCL, CUDA or native code.
 */
package io.github.nccl4j.launch;
