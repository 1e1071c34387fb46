package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.NcclLibraryException;
import java.util.Arrays;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Adds a rank to an existing communicator: all ranks but the last work together, then the last rank joins.
 *
 * <p>The sample broadcasts the id that the new rank needs over the communicator of all ranks; a program would use a {@link
 * io.github.nccl4j.launch.TcpStore store}.
 */
@Command(
        name = "09-grow",
        aliases = {"09", "9", "grow"},
        sortOptions = false,
        description = {
            "Sums arrays over all ranks but the last, adds the last rank, and sums over all; checks every element.",
            "",
            "Needs ncclCommGrow of NCCL 2.29.2. Without it the sample prints that it is skipped, and succeeds.",
            ""
        })
final class Grow extends Sample {

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "100000",
            description = "Elements of each rank. Default: ${DEFAULT-VALUE}.")
    private int count;

    @Override
    void validate() {
        if (count < 1) {
            throw invalid("-c must be at least 1: " + count);
        }
    }

    @Override
    void run(Communicator world) {
        try {
            NcclLibrary.get().require("ncclCommGrow");
        } catch (NcclLibraryException e) {
            // All ranks skip alike: they have the same library.
            skip(world, e.getMessage());
            return;
        }
        if (world.size() < 2) {
            skip(world, "needs at least 2 ranks, one of which joins: -n 2");
            return;
        }
        int before = world.size() - 1;
        boolean joins = world.rank() == before;
        try (CudaStream stream = CudaStream.nonBlocking(world.device())) {
            Communicator small = null;
            if (joins) {
                world.splitNone();
            } else {
                small = world.split(0, world.rank());
                sum(small, stream);
            }
            UniqueId id = broadcast(world, world.rank() == 0 ? small.growId() : null, stream);
            CommunicatorBuilder builder = Communicator.builder().device(world.device());
            try (Communicator grown = joins ? builder.join(id, before, world.size()) : small.grow(world.size())) {
                sum(grown, stream);
                System.out.println("rank " + world.rank() + (joins ? ": joined as rank " : ": remained rank ")
                        + grown.rank() + " when " + before + (before == 1 ? " rank" : " ranks") + " became "
                        + grown.size() + "; sums of " + count + " elements, every element checked");
            }
            if (small != null) {
                small.close();
            }
        }
    }

    /** Broadcasts the id of rank 0; {@code id} is null on other ranks. */
    private static UniqueId broadcast(Communicator world, UniqueId id, CudaStream stream) {
        byte[] bytes = id == null ? new byte[UniqueId.BYTES] : id.toBytes();
        try (DeviceBuffer<Uint8> buffer = world.device().allocate(ElementType.UINT8, bytes.length)) {
            buffer.copyFrom(bytes);
            world.broadcast(buffer, 0, stream);
            world.work(stream).await();
            buffer.copyTo(bytes);
        }
        return UniqueId.of(bytes);
    }

    private void sum(Communicator communicator, CudaStream stream) {
        long[] numbers = new long[count];
        Arrays.setAll(numbers, i -> (communicator.rank() + 1L) * i);
        try (DeviceBuffer<Int64> buffer = communicator.device().allocate(ElementType.INT64, count)) {
            buffer.copyFrom(numbers);
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            buffer.copyTo(numbers);
        }
        long ranks =
                IntStream.rangeClosed(1, communicator.size()).asLongStream().sum();
        for (int i = 0; i < count; i++) {
            if (numbers[i] != ranks * i) {
                throw new Failure("rank " + communicator.rank() + " of " + communicator.size() + ": element " + i
                        + " is wrong: expected " + ranks * i + ", got " + numbers[i]);
            }
        }
    }
}
