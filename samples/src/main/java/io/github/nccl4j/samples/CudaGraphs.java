package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.samples.support.Pattern;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Captures a step once, copies and a collective, and replays it: the device gets all of it by one cheap call.
 *
 * <p>Every replay works on the same memory, into which the program puts new data before.
 */
@Command(
        name = "06-cuda-graph",
        aliases = {"06", "6", "cuda-graph"},
        sortOptions = false,
        description = {
            "Captures a step with an all-reduce as a CUDA graph and replays it with new data; needs GPUs.",
            "",
            "Every replay is checked element by element. Without GPUs the sample says so and succeeds.",
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
            description = "Replays. Default: ${DEFAULT-VALUE}.")
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
            skip(communicator, "a CUDA graph needs GPUs, and the host engine does its work when it is called");
            return;
        }
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> input = device.allocatePinned(ElementType.FLOAT32, count);
                DeviceBuffer<Float32> data = device.allocate(ElementType.FLOAT32, count);
                DeviceBuffer<Float32> output = device.allocatePinned(ElementType.FLOAT32, count);
                // Opened last and closed first: NCCL keeps the communicator until no graph has operations of it.
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
