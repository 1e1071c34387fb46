/**
 * NCCL for Java programs: types instead of codes, objects instead of addresses, exceptions instead of results.
 *
 * <p>What there is:
 *
 * <ul>
 *   <li>{@link io.github.nccl4j.highlevel.NcclLibrary}: which library the process uses, its version, what it can do.
 *   <li>{@link io.github.nccl4j.highlevel.UniqueId}: what the ranks of a new communicator share.
 *   <li>{@link io.github.nccl4j.highlevel.CommunicatorConfig}: how a communicator is to be, checked against the library.
 *   <li>{@link io.github.nccl4j.highlevel.DataType}, {@link io.github.nccl4j.highlevel.ReduceOp} and the flags: the
 *       constants of {@code nccl.h}, each with its code, which the calls of {@link io.github.nccl4j.global.nccl} take.
 *   <li>{@link io.github.nccl4j.highlevel.Device}: a CUDA device or host memory, with its
 *       {@link io.github.nccl4j.highlevel.DeviceBuffer}s, {@link io.github.nccl4j.highlevel.CudaStream}s and
 *       {@link io.github.nccl4j.highlevel.CudaEvent}s.
 *   <li>{@link io.github.nccl4j.library.NcclException}: everything that can go wrong in NCCL, and
 *       {@link io.github.nccl4j.highlevel.NcclResultException}: what its functions return as errors.
 * </ul>
 *
 * <p>Enumerations, records and all other objects here are immutable and may be used from any thread, unless their class
 * says otherwise. No method takes or returns null.
 *
 * <pre>{@code
 * NcclLibrary library = NcclLibrary.get();
 * System.out.println(library); // NCCL 2.28.3 from /usr/lib/x86_64-linux-gnu/libnccl.so.2
 *
 * CommunicatorConfig config = CommunicatorConfig.builder().maxCtas(16).commName("gradients").build();
 * config.requireSupportedBy(library); // commName needs NCCL 2.27.3
 *
 * UniqueId id = UniqueId.create(); // at rank 0, which sends id.toBytes() to the others
 * }</pre>
 */
package io.github.nccl4j.highlevel;
