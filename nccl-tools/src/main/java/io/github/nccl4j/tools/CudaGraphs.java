package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.support.Pattern;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Captures a step of two copies and a collective as a CUDA graph and replays it: one cheap call launches the whole step.
 *
 * <p>Every replay uses the same memory; the program writes new input there before each replay.
 */
@Command(
        name = "06-cuda-graph",
        aliases = {"06", "6", "cuda-graph"},
        sortOptions = false,
        description = {
            "Captures a step with an all-reduce as a CUDA graph and replays it with new data; needs GPUs.",
            "",
            "Checks every element of every replay. Without GPUs the sample prints that it is skipped, and succeeds.",
            ""
        })
final class CudaGraphs extends Sample {

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "10000",
            description = "Elements of each rank. Default: ${DEFAULT-VALUE}.")
    private int count;

    @Option(
            names = {"-i", "--iters"},
            paramLabel = "N",
            defaultValue = "1000",
            description = "Number of replays. Default: ${DEFAULT-VALUE}.")
    private int replays;

    @Override
    void validate() {
        if (count < 1 || replays < 1) {
            throw invalid("-c and -i must be at least 1: " + count + ", " + replays);
        }
    }

    @Override
    void run(Communicator communicator) {
        Device device = communicator.device();
        if (device.isHost()) {
            skip(communicator, "a CUDA graph needs GPUs; the host engine works in host memory");
            return;
        }
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
            for (int replay = 0; replay < replays; replay++) {
                pattern(communicator.rank(), replay).write(input);
                step.launch(stream);
                communicator.work(stream).await();
                check(sum(communicator, replay).compare(output), communicator, "replay " + replay);
            }
        }
        System.out.println("rank " + communicator.rank() + " replayed a graph " + replays + " times, " + count
                + " elements each, every element checked");
    }

    private static Pattern pattern(int rank, int replay) {
        return Pattern.of(rank * 37L + replay);
    }

    private static Pattern sum(Communicator communicator, int replay) {
        return IntStream.range(0, communicator.size())
                .mapToObj(rank -> pattern(rank, replay))
                .reduce(Pattern::plus)
                .orElseThrow();
    }
}
