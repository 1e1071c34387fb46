package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.highlevel.NoWindowException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;

/**
 * Registers memory as a symmetric window, puts data into the window of the next rank, which calls no receive, and runs a
 * collective on memory in the window.
 *
 * <p>A rank sends from the first half of its window; the previous rank writes into the second half.
 */
public final class Windows {

    public static void main(String[] args) {
        int count = 100_000;
        int rounds = 5;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-c" -> count = Integer.parseInt(args[++i]);
                case "-i" -> rounds = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (count < 1 || rounds < 1) {
            throw new IllegalArgumentException("-c and -i must be at least 1: " + count + ", " + rounds);
        }
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        Communicator ranks =
                Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
        int elements = count;
        int puts = rounds;
        ranks.run(communicator -> {
            try {
                NcclLibrary.get().require("ncclPutSignal");
                useWindow(communicator, elements, puts);
                System.out.println("rank " + communicator.rank() + ": " + puts
                        + " puts by the previous rank and a sum in windows, " + elements
                        + " elements each, every element checked");
            } catch (NcclLibraryException | NoWindowException e) {
                // All ranks skip alike: they have the same library, and NCCL creates windows for all ranks or for none.
                if (communicator.rank() == 0) {
                    System.out.println("skipped: " + e.getMessage());
                }
            }
        });
    }

    private static void useWindow(Communicator communicator, int count, int rounds) {
        int rank = communicator.rank();
        int size = communicator.size();
        int next = (rank + 1) % size;
        int previous = (rank + size - 1) % size;
        Device device = communicator.device();
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> memory = device.allocateForWindow(ElementType.FLOAT32, 2L * count);
                Window window = communicator.registerWindow(memory, WindowFlag.COLL_SYMMETRIC)) {
            DeviceBuffer<Float32> outgoing = memory.slice(0, count);
            DeviceBuffer<Float32> incoming = memory.slice(count, count);
            for (int round = 0; round < rounds; round++) {
                write(outgoing, rank + 1, round);
                communicator.putSignal(outgoing, window, count, next, stream);
                communicator.waitSignal(previous, stream);
                communicator.work(stream).await();
                check(incoming, previous + 1, round, "rank " + rank + ": round " + round + ", from rank " + previous);
                // Allow the previous rank to write again; write again when the next rank allows it.
                communicator.signal(previous, stream);
                communicator.waitSignal(next, stream);
            }
            communicator.work(stream).await();
            // The call is the same as without a window, but NCCL has faster algorithms for buffers in windows.
            write(outgoing, rank + 1, rounds);
            communicator.allReduce(outgoing, incoming, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            check(incoming, size * (size + 1) / 2, rounds, "rank " + rank + ": sum in windows");
        }
    }

    /** An element of scale 1, 2, ... in each round: a whole number, so that sums are exact. */
    private static float number(int scale, int round, int element) {
        return scale * ((element + round) % 127);
    }

    private static void write(DeviceBuffer<Float32> buffer, int scale, int round) {
        float[] numbers = new float[Math.toIntExact(buffer.length())];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = number(scale, round, i);
        }
        buffer.copyFrom(numbers);
    }

    private static void check(DeviceBuffer<Float32> buffer, int scale, int round, String what) {
        float[] got = buffer.toFloatArray();
        for (int i = 0; i < got.length; i++) {
            if (got[i] != number(scale, round, i)) {
                throw new IllegalStateException(
                        what + ": element " + i + " is wrong: expected " + number(scale, round, i) + ", got " + got[i]);
            }
        }
    }
}
