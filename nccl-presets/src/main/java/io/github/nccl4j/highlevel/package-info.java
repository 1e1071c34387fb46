/**
 * NCCL for Java programs: types instead of codes, objects instead of addresses, exceptions instead of results.
 *
 * <p>What there is:
 *
 * <ul>
 *   <li>{@link io.github.nccl4j.highlevel.Communicator}: one rank's end of a group of ranks, with every operation; made
 *       with a {@link io.github.nccl4j.highlevel.UniqueId}, by a {@link io.github.nccl4j.highlevel.CommunicatorBuilder}
 *       if there is something to set, such as a {@link io.github.nccl4j.highlevel.CommunicatorConfig}.
 *   <li>{@link io.github.nccl4j.highlevel.Group}: operations that are launched together;
 *       {@link io.github.nccl4j.highlevel.Work}: operations to be waited for.
 *   <li>{@link io.github.nccl4j.highlevel.Device}: a CUDA device or host memory, with its
 *       {@link io.github.nccl4j.highlevel.DeviceBuffer}s, {@link io.github.nccl4j.highlevel.CudaStream}s,
 *       {@link io.github.nccl4j.highlevel.CudaEvent}s and {@link io.github.nccl4j.highlevel.CudaGraph}s.
 *   <li>{@link io.github.nccl4j.highlevel.Window} and {@link io.github.nccl4j.highlevel.Registration}: buffers that NCCL
 *       and the other ranks know; {@link io.github.nccl4j.highlevel.AllToAllvPlan}: an exchange that they agreed upon.
 *   <li>{@link io.github.nccl4j.highlevel.ElementType}, {@link io.github.nccl4j.highlevel.ReduceOp} and the flags: the
 *       constants of {@code nccl.h}, each with its code, which the calls of {@link io.github.nccl4j.global.nccl} take.
 *   <li>{@link io.github.nccl4j.highlevel.NcclLibrary}: which library the process uses, its version, what it can do;
 *       {@link io.github.nccl4j.highlevel.NcclEncryption}: a key for NCCL's TCP connections.
 *   <li>{@link io.github.nccl4j.library.NcclException}: everything that can go wrong in NCCL, and
 *       {@link io.github.nccl4j.highlevel.NcclResultException}: what its functions return as errors.
 * </ul>
 *
 * <p>Enumerations, records and all other objects here are immutable and may be used from any thread, unless their class
 * says otherwise. No method takes or returns null.
 *
 * <pre>{@code
 * UniqueId id = rank == 0 ? UniqueId.create() : receiveFromRank0();
 * try (Communicator communicator = Communicator.create(id, rank, size);
 *         CudaStream stream = CudaStream.nonBlocking(communicator.device());
 *         DeviceBuffer<Float32> data = communicator.device().allocate(ElementType.FLOAT32, numbers.length)) {
 *     data.copyFrom(numbers);
 *     communicator.allReduce(data, ReduceOp.SUM, stream);
 *     communicator.work(stream).await();
 *     data.copyTo(numbers);
 * }
 * }</pre>
 *
 * <h2>A tour</h2>
 *
 * <p><b>Ranks.</b> Each rank of a communicator is an object in some process, best one process for each GPU, which a
 * launcher starts. Rank 0 makes the id, and the others get its bytes in any way. Ranks in threads of one process are for
 * tests, and for programs that have a reason; {@link io.github.nccl4j.highlevel.CommunicatorBuilder#createAll} makes all of a
 * process at once.
 *
 * <p><b>Streams.</b> An operation returns when it is in the stream; what is in the buffers then is decided by what follows in
 * the stream, or by waiting: with a deadline, and an eye on the other ranks.
 *
 * <pre>{@code
 * communicator.allReduce(gradients, ReduceOp.AVG, stream);
 * Work work = communicator.work(stream);
 * work.await(Duration.ofSeconds(10)); // or work.toFuture()
 * }</pre>
 *
 * <p><b>Groups.</b> Calls of several ranks, or several calls of one, that wait for each other go in a group.
 *
 * <pre>{@code
 * Group.run(() -> {
 *     communicator.send(outgoing, next, stream);
 *     communicator.recv(incoming, previous, stream);
 * });
 * }</pre>
 *
 * <p><b>When something goes wrong.</b> Misuse is an exception before NCCL is called, and nothing has changed then. When a rank
 * is lost or late, every call that waits for it ends with a {@link io.github.nccl4j.highlevel.NcclRemoteException} or a {@link
 * io.github.nccl4j.highlevel.NcclTimeoutException}. What then happens to the communicator, its {@link
 * io.github.nccl4j.highlevel.FailurePolicy} says; closing one that has failed aborts it, and the ranks that are left can {@link
 * io.github.nccl4j.highlevel.Communicator#shrink shrink} it first; {@link io.github.nccl4j.highlevel.Recovery} does all of
 * that. What a communicator was doing, its {@link io.github.nccl4j.highlevel.FlightRecorder} tells.
 *
 * <p><b>Closing.</b> Everything that is made is closed by who made it, in any order: memory stays while an operation that was
 * called, a window or a graph needs it.
 */
package io.github.nccl4j.highlevel;
