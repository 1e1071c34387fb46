package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.ReduceOp;

/**
 * Captures a step of two copies and a collective as a CUDA graph and replays it: one cheap call launches the whole step.
 *
 * <p>Every replay uses the same memory; the program writes new input there before each replay.
 */
public final class CudaGraphs {

    public static void main(String[] args) {
        int count = 10_000;
        int replays = 1000;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-c" -> count = Integer.parseInt(args[++i]);
                case "-i" -> replays = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (count < 1 || replays < 1) {
            throw new IllegalArgumentException("-c and -i must be at least 1: " + count + ", " + replays);
        }
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        Communicator ranks =
                Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
        int elements = count;
        int times = replays;
        ranks.run(communicator -> replay(communicator, elements, times));
    }

    private static void replay(Communicator communicator, int count, int replays) {
        Device device = communicator.device();
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> input = device.allocatePinned(ElementType.FLOAT32, count);
                DeviceBuffer<Float32> data = device.allocate(ElementType.FLOAT32, count);
                DeviceBuffer<Float32> output = device.allocatePinned(ElementType.FLOAT32, count);
                // Last, so that it is closed first: NCCL keeps a communicator while a graph contains its operations.
                CudaGraph step = CudaGraph.capture(stream, () -> {
                    data.copyFromAsync(input, stream);
                    communicator.allReduce(data, ReduceOp.SUM, stream);
                    output.copyFromAsync(data, stream);
                })) {
            float[] numbers = new float[count];
            for (int replay = 0; replay < replays; replay++) {
                for (int i = 0; i < count; i++) {
                    numbers[i] = number(communicator.rank(), replay, i);
                }
                input.copyFrom(numbers);
                step.launch(stream);
                communicator.work(stream).await();
                output.copyTo(numbers);
                check(communicator, numbers, replay);
            }
        }
        System.out.println("rank " + communicator.rank() + " replayed a graph " + replays + " times, " + count
                + " elements each, every element checked");
    }

    /** An element of the input of a rank: a whole number, so that sums are exact. */
    private static float number(int rank, int replay, int element) {
        return (rank + 1) * ((element + replay) % 127);
    }

    private static void check(Communicator communicator, float[] got, int replay) {
        for (int i = 0; i < got.length; i++) {
            float expected = 0;
            for (int rank = 0; rank < communicator.size(); rank++) {
                expected += number(rank, replay, i);
            }
            if (got[i] != expected) {
                throw new IllegalStateException("rank " + communicator.rank() + ": replay " + replay + ": element " + i
                        + " is wrong: expected " + expected + ", got " + got[i]);
            }
        }
    }
}
