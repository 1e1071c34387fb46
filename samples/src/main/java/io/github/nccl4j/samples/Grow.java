package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import java.util.Arrays;

/**
 * Adds a rank to an existing communicator: all ranks but the last work together, then the last rank joins.
 *
 * <p>The sample broadcasts the id that the new rank needs over the communicator of all ranks; a program would use a {@link
 * io.github.nccl4j.launch.TcpStore store}.
 */
public final class Grow {

    public static void main(String[] args) {
        int count = 100_000;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-c" -> count = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (count < 1) {
            throw new IllegalArgumentException("-c must be at least 1: " + count);
        }
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        Communicator ranks =
                Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
        int elements = count;
        ranks.run(world -> {
            try {
                NcclLibrary.get().require("ncclCommGrow");
                if (world.size() > 1) {
                    grow(world, elements);
                } else {
                    System.out.println("skipped: needs at least 2 ranks, one of which joins: -n 2");
                }
            } catch (NcclLibraryException e) {
                // All ranks skip alike: they have the same library.
                if (world.rank() == 0) {
                    System.out.println("skipped: " + e.getMessage());
                }
            }
        });
    }

    private static void grow(Communicator world, int count) {
        int before = world.size() - 1;
        boolean joins = world.rank() == before;
        try (CudaStream stream = CudaStream.nonBlocking(world.device());
                Communicator small = joins ? null : world.split(0, world.rank())) {
            if (joins) {
                world.splitNone();
            } else {
                sum(small, count, stream);
            }
            byte[] id =
                    world.control().broadcast(world.rank() == 0 ? small.growId().toBytes() : null, 0);
            CommunicatorBuilder builder = Communicator.builder().device(world.device());
            try (Communicator grown =
                    joins ? builder.join(UniqueId.of(id), before, world.size()) : small.grow(world.size())) {
                sum(grown, count, stream);
                System.out.println("rank " + world.rank() + (joins ? ": joined as rank " : ": remained rank ")
                        + grown.rank() + " when " + before + (before == 1 ? " rank" : " ranks") + " became "
                        + grown.size() + "; sums of " + count + " elements, every element checked");
            }
        }
    }

    private static void sum(Communicator communicator, int count, CudaStream stream) {
        long[] numbers = new long[count];
        Arrays.setAll(numbers, i -> (communicator.rank() + 1L) * i);
        try (DeviceBuffer<Int64> buffer = communicator.device().copyOf(numbers)) {
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            numbers = buffer.toLongArray();
        }
        long ranks = communicator.size() * (communicator.size() + 1L) / 2;
        for (int i = 0; i < count; i++) {
            if (numbers[i] != ranks * i) {
                throw new IllegalStateException("rank " + communicator.rank() + " of " + communicator.size()
                        + ": element " + i + " is wrong: expected " + ranks * i + ", got " + numbers[i]);
            }
        }
    }
}
