/**
 * NCCL for Java programs, with types instead of codes, objects instead of addresses, and exceptions instead of result
 * codes.
 *
 * <p>The main classes:
 *
 * <ul>
 *   <li>{@link io.github.nccl4j.highlevel.Communicator}: a rank's handle to a group of ranks, with every operation.
 *       It is created from a {@link io.github.nccl4j.highlevel.UniqueId}, with settings by a {@link
 *       io.github.nccl4j.highlevel.CommunicatorBuilder}, such as a {@link
 *       io.github.nccl4j.highlevel.CommunicatorConfig}.
 *   <li>{@link io.github.nccl4j.highlevel.Group}: operations that are launched together; {@link
 *       io.github.nccl4j.highlevel.Work}: operations for which a thread can wait.
 *   <li>{@link io.github.nccl4j.highlevel.Device}: a CUDA device or host memory, with its
 *       {@link io.github.nccl4j.highlevel.DeviceBuffer}s, {@link io.github.nccl4j.highlevel.CudaStream}s,
 *       {@link io.github.nccl4j.highlevel.CudaEvent}s and {@link io.github.nccl4j.highlevel.CudaGraph}s.
 *   <li>{@link io.github.nccl4j.highlevel.Window} and {@link io.github.nccl4j.highlevel.Registration}: buffers that
 *       NCCL and the other ranks can access; {@link io.github.nccl4j.highlevel.AllToAllvPlan}: an exchange on which all
 *       ranks have agreed.
 *   <li>{@link io.github.nccl4j.highlevel.ElementType}, {@link io.github.nccl4j.highlevel.ReduceOp} and the flags: the
 *       constants of {@code nccl.h}, each with its code, which the calls of {@link io.github.nccl4j.global.nccl} take.
 *   <li>{@link io.github.nccl4j.highlevel.NcclLibrary}: the library of the process, its version and its functions;
 *       {@link io.github.nccl4j.highlevel.NcclEncryption}: a key for NCCL's TCP connections.
 *   <li>{@link io.github.nccl4j.highlevel.NcclException}: the superclass of all failures, and {@link
 *       io.github.nccl4j.highlevel.NcclResultException}: an error that a function of NCCL returned.
 * </ul>
 *
 * <p>Unless its class says otherwise, an object of this package is immutable and may be used by any thread. No method
 * accepts or returns null.
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
 * <p><b>Ranks.</b> Each rank of a communicator is an object in some process, preferably one process per GPU, started by
 * a launcher. Rank 0 creates the id and passes its bytes to the other ranks. Ranks in threads of one process are for
 * tests and special cases; {@link io.github.nccl4j.highlevel.CommunicatorBuilder#createAll} creates all ranks of a
 * process at once.
 *
 * <p><b>Streams.</b> An operation returns when it is enqueued in the stream. Its results are available to later work of
 * the stream, or after a wait, which has a deadline and checks the other ranks.
 *
 * <pre>{@code
 * communicator.allReduce(gradients, ReduceOp.AVG, stream);
 * Work work = communicator.work(stream);
 * work.await(Duration.ofSeconds(10)); // or work.toFuture()
 * }</pre>
 *
 * <p><b>Groups.</b> Calls of several ranks, or several calls of one rank, that wait for each other must be in a group.
 *
 * <pre>{@code
 * Group.run(() -> {
 *     communicator.send(outgoing, next, stream);
 *     communicator.recv(incoming, previous, stream);
 * });
 * }</pre>
 *
 * <p><b>Virtual threads</b> may use a communicator. With the host engine, their number is not limited: a platform thread
 * makes the calls that wait for other ranks, which takes tens of microseconds more in the default stream. On a GPU, the
 * virtual thread makes the call and holds its carrier until NCCL returns; NCCL returns at once, except from the first
 * operation of a kind, in which it connects the ranks. Therefore the number of ranks of one process in virtual threads
 * must not exceed the number of carriers (the system property {@code jdk.virtualThreadScheduler.parallelism}, by default
 * the number of processors); otherwise the ranks wait for each other until the deadline, and the message of the exception
 * says so.
 *
 * <p><b>Failures.</b> Misuse throws before NCCL is called, and changes nothing. If a rank is lost or late, every call
 * that waits for it throws a {@link io.github.nccl4j.highlevel.NcclRemoteException} or a {@link
 * io.github.nccl4j.highlevel.NcclTimeoutException}. The {@link io.github.nccl4j.highlevel.FailurePolicy} decides what
 * happens to the communicator. Closing a failed communicator aborts it; the surviving ranks can {@link
 * io.github.nccl4j.highlevel.Communicator#shrink shrink} it first. {@link io.github.nccl4j.highlevel.Recovery} stops,
 * shrinks or replaces the communicator. The {@link io.github.nccl4j.highlevel.FlightRecorder} shows the last operations
 * of a communicator.
 *
 * <p><b>Closing.</b> The creator of an object closes it; the order is free, because memory is kept while a called
 * operation, a window or a graph needs it.
 */
@NullMarked
package io.github.nccl4j.highlevel;

import org.jspecify.annotations.NullMarked;
