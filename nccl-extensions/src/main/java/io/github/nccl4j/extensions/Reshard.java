package io.github.nccl4j.extensions;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * A plan that copies a tensor from one layout to another, for any number of runs: from training to inference ranks, or from one
 * way of sharding to another.
 *
 * <pre>{@code
 * Mesh mesh = Mesh.of("model", size);
 * TensorLayout rows = TensorLayout.of(mesh, List.of(Placement.shard(0)), 1024, 512);
 * TensorLayout columns = TensorLayout.of(mesh, List.of(Placement.shard(1)), 1024, 512);
 * try (DistributedTensor<Float32> source = DistributedTensor.allocate(communicator, rows, ElementType.FLOAT32);
 *         DistributedTensor<Float32> target = DistributedTensor.allocate(communicator, columns, ElementType.FLOAT32);
 *         Reshard<Float32> plan = Reshard.plan(communicator, source, target)) {
 *     plan.run(stream);
 *     stream.synchronize();
 * }
 * }</pre>
 *
 * <p>The meshes may be any ranks of the communicator, also overlapping ones, and may have any number of dimensions; the layouts
 * may divide the tensor unevenly. A rank keeps a part that it has already, and replicas share the sending.
 *
 * <p>A run groups a send and a receive for each pair of ranks with common elements, with any NCCL and on the host engine. A block
 * of elements that follow each other in a rank's memory is sent from and received into the tensor itself. Other blocks go through
 * memory of the plan, with a copy for each run of elements that follow each other. Therefore shards of the first dimension are
 * fastest, and shards of a last dimension with short rows are slow.
 *
 * <p><b>Ownership.</b> The creator closes the plan, after its work in the streams is complete. The tensors stay the caller's, and
 * must be open while the plan runs.
 *
 * <p><b>Threads.</b> As the communicator: one at a time. Runs in different streams must not overlap.
 *
 * @param <T> the type of the elements
 * @since 0.1
 */
public final class Reshard<T extends Element> implements AutoCloseable {
    private static final long FNV_OFFSET = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private final Communicator communicator;
    private final List<Block<T>> sends = new ArrayList<>();
    private final List<Block<T>> receives = new ArrayList<>();
    private final List<Move<T>> moves = new ArrayList<>();
    private final List<DeviceBuffer<T>> owned = new ArrayList<>();
    private final Optional<M2nCopy> m2n;

    /**
     * Elements that go to or come from another rank.
     *
     * @param peer the other rank
     * @param box the elements
     * @param outer the part of this rank that contains them
     * @param part the memory of that part
     * @param message the memory that is sent or received: the plan's, or a slice of the part
     * @param isStaged true if the message is the plan's memory
     */
    private record Block<T extends Element>(
            int peer, Box box, Box outer, DeviceBuffer<T> part, DeviceBuffer<T> message, boolean isStaged) {
        /** Copies the elements between the part and the plan's memory. */
        void stage(boolean pack, CudaStream stream) {
            long run = box.runLength(outer);
            long[] staged = {0};
            box.forEachRun(outer, run, at -> {
                DeviceBuffer<T> inPart = part.slice(at, run);
                DeviceBuffer<T> inMessage = message.slice(staged[0], run);
                if (pack) {
                    inMessage.copyFromAsync(inPart, stream);
                } else {
                    inPart.copyFromAsync(inMessage, stream);
                }
                staged[0] += run;
            });
        }
    }

    /** Elements that this rank has in both layouts. */
    private record Move<T extends Element>(Box box, Box from, DeviceBuffer<T> source, Box to, DeviceBuffer<T> target) {
        void run(CudaStream stream) {
            long run = Math.min(box.runLength(from), box.runLength(to));
            List<Long> sources = new ArrayList<>();
            box.forEachRun(from, run, sources::add);
            int[] next = {0};
            box.forEachRun(to, run, at -> target.slice(at, run)
                    .copyFromAsync(source.slice(sources.get(next[0]++), run), stream));
        }
    }

    private Reshard(Communicator communicator, Optional<M2nCopy> m2n) {
        this.communicator = communicator;
        this.m2n = m2n;
    }

    /**
     * Creates a plan. Collective over all ranks of the communicator, also those in neither mesh; waits for the other ranks.
     *
     * <p>C function: {@code ncclAllReduce}, on {@link Communicator#stream()}.
     *
     * @param <T> the type of the elements
     * @param communicator the communicator
     * @param source the tensor to copy
     * @param target the tensor to write, in other memory
     * @return the plan, to be closed by the caller
     * @throws IllegalArgumentException if the tensors have different shapes, if their memory overlaps, or if ranks disagree on
     *     layouts or types; the last is thrown on all ranks
     */
    public static <T extends Element> Reshard<T> plan(
            Communicator communicator, DistributedTensor<T> source, DistributedTensor<T> target) {
        return plan(communicator, source, target, false);
    }

    /**
     * Creates a plan that NVIDIA's library NCCL M2N runs, if all ranks can use it; otherwise as {@link #plan}. {@link
     * #usesM2n} tells. Collective over all ranks of the communicator; waits for the other ranks.
     *
     * <p>M2N needs NVIDIA's NCCL 2.30.5 or newer, a communicator that blocks, meshes of at most two dimensions without a common
     * rank (unless the communicator has one rank), a tensor of at most three dimensions and no empty part, and layouts that
     * shard at most one dimension, evenly.
     *
     * <p>The communicator does not see the work of M2N. {@link CudaStream#synchronize()} waits for it without the
     * communicator's deadline; {@link Communicator#work(CudaStream)} has the deadline. A kernel of M2N that waits for a lost rank
     * cannot be aborted: {@link Communicator#abort()} may not return, and the process must end.
     *
     * <p>C functions: {@code ncclAllReduce}, on {@link Communicator#stream()}, and {@code ncclM2nInit}, since NCCL M2N 0.2.0.
     *
     * @param <T> the type of the elements
     * @param communicator the communicator
     * @param source the tensor to copy
     * @param target the tensor to write, in other memory
     * @return the plan, to be closed by the caller
     * @throws IllegalArgumentException as {@link #plan}
     * @throws io.github.nccl4j.extensions.library.ExtensionException if {@code ncclM2nInit} fails
     */
    public static <T extends Element> Reshard<T> planWithM2n(
            Communicator communicator, DistributedTensor<T> source, DistributedTensor<T> target) {
        return plan(communicator, source, target, true);
    }

    private static <T extends Element> Reshard<T> plan(
            Communicator communicator, DistributedTensor<T> source, DistributedTensor<T> target, boolean wantsM2n) {
        source.layout().mesh().requireWithin(communicator);
        target.layout().mesh().requireWithin(communicator);
        if (!Arrays.equals(source.layout().shape(), target.layout().shape())) {
            throw new IllegalArgumentException(
                    "source and target must have one shape: " + source.layout() + ", " + target.layout());
        }
        requireNoOverlap(source.local(), target.local());
        boolean canUseM2n = wantsM2n
                && M2nCopy.canMove(source.layout(), target.layout(), communicator.size())
                && M2nCopy.isAvailable(communicator);
        boolean allCanUseM2n = requireAgreement(
                communicator, source + " to " + target + (wantsM2n ? " with NCCL M2N" : ""), canUseM2n);
        if (allCanUseM2n) {
            return new Reshard<>(communicator, Optional.of(new M2nCopy(communicator, source, target)));
        }
        Reshard<T> plan = new Reshard<>(communicator, Optional.empty());
        try {
            plan.prepare(source, target);
            return plan;
        } catch (RuntimeException e) {
            plan.close();
            throw e;
        }
    }

    private static <T extends Element> void requireNoOverlap(
            Optional<DeviceBuffer<T>> source, Optional<DeviceBuffer<T>> target) {
        if (source.isPresent() && target.isPresent()) {
            long from = source.get().address();
            long to = target.get().address();
            if (from < to + target.get().sizeInBytes()
                    && to < from + source.get().sizeInBytes()) {
                throw new IllegalArgumentException(
                        "source and target must not overlap: " + source.get() + ", " + target.get());
            }
        }
    }

    /** Returns true if all ranks can; throws on all ranks if their texts differ. */
    private static boolean requireAgreement(Communicator communicator, String text, boolean can) {
        long hash = FNV_OFFSET;
        for (int i = 0; i < text.length(); i++) {
            hash = (hash ^ text.charAt(i)) * FNV_PRIME;
        }
        // The least complement is the complement of the greatest hash.
        long[] least = {hash, ~hash, can ? 1 : 0};
        try (DeviceBuffer<Int64> exchanged = communicator.device().allocate(ElementType.INT64, least.length)) {
            exchanged.copyFrom(least);
            communicator.allReduce(exchanged, ReduceOp.MIN, communicator.stream());
            communicator.stream().synchronize(communicator.deadline());
            exchanged.copyTo(least);
        }
        if (least[0] != ~least[1]) {
            throw new IllegalArgumentException("all ranks must have the same layouts and type; this rank has " + text);
        }
        return least[2] == 1;
    }

    /** {@return true if NCCL M2N runs this plan; the same on all ranks} */
    public boolean usesM2n() {
        return m2n.isPresent();
    }

    private void prepare(DistributedTensor<T> source, DistributedTensor<T> target) {
        int rank = communicator.rank();
        Box from = source.layout().box(rank);
        Box to = target.layout().box(rank);
        List<Transfer> outgoing = new ArrayList<>();
        List<Transfer> incoming = new ArrayList<>();
        for (Transfer transfer : Transfer.between(source.layout(), target.layout())) {
            if (transfer.from() == rank && transfer.to() == rank) {
                moves.add(new Move<>(
                        transfer.box(),
                        from,
                        source.local().orElseThrow(),
                        to,
                        target.local().orElseThrow()));
            } else if (transfer.from() == rank) {
                outgoing.add(transfer);
            } else if (transfer.to() == rank) {
                incoming.add(transfer);
            }
        }
        source.local().ifPresent(part -> addBlocks(outgoing, from, part, sends));
        target.local().ifPresent(part -> addBlocks(incoming, to, part, receives));
    }

    /** Adds the blocks of the transfers of a part, with one buffer for those that are not contiguous in the part. */
    private void addBlocks(List<Transfer> transfers, Box outer, DeviceBuffer<T> part, List<Block<T>> blocks) {
        long staged = transfers.stream()
                .map(Transfer::box)
                .filter(box -> !isContiguous(box, outer))
                .mapToLong(Box::elements)
                .sum();
        if (staged > 0) {
            owned.add(communicator.device().allocate(part.type(), staged));
        }
        long next = 0;
        for (Transfer transfer : transfers) {
            Box box = transfer.box();
            int peer = transfer.from() == communicator.rank() ? transfer.to() : transfer.from();
            if (isContiguous(box, outer)) {
                box.forEachRun(
                        outer,
                        box.elements(),
                        at -> blocks.add(new Block<>(peer, box, outer, part, part.slice(at, box.elements()), false)));
            } else {
                DeviceBuffer<T> message = owned.get(owned.size() - 1).slice(next, box.elements());
                blocks.add(new Block<>(peer, box, outer, part, message, true));
                next += box.elements();
            }
        }
    }

    private static boolean isContiguous(Box box, Box outer) {
        return box.runLength(outer) == box.elements();
    }

    /**
     * Copies the tensor. Collective over the ranks of the meshes, in stream order.
     *
     * <p>C functions: a group of {@code ncclSend} and {@code ncclRecv}, and copies of CUDA; or {@code ncclReshard}, since NCCL
     * M2N 0.2.0, which all ranks of the communicator call.
     *
     * @param stream the stream
     * @throws IllegalStateException if a group is open in this thread, or if a tensor or the plan is closed
     * @throws io.github.nccl4j.extensions.library.ExtensionException if {@code ncclReshard} fails
     */
    public void run(CudaStream stream) {
        if (Group.isOpenInThisThread()) {
            throw new IllegalStateException("a plan must not run in a group: its copies and transfers have an order");
        }
        if (m2n.isPresent()) {
            m2n.get().run(stream);
            return;
        }
        sends.stream().filter(Block::isStaged).forEach(block -> block.stage(true, stream));
        if (!sends.isEmpty() || !receives.isEmpty()) {
            Group.run(() -> {
                sends.forEach(block -> communicator.send(block.message(), block.peer(), stream));
                receives.forEach(block -> communicator.recv(block.message(), block.peer(), stream));
            });
        }
        moves.forEach(move -> move.run(stream));
        receives.stream().filter(Block::isStaged).forEach(block -> block.stage(false, stream));
    }

    /** Frees the memory of this plan, and its handle of NCCL M2N. */
    @Override
    public void close() {
        m2n.ifPresent(M2nCopy::close);
        owned.forEach(DeviceBuffer::close);
    }
}
