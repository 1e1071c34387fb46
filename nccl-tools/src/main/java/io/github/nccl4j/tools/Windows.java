package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NoWindowException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.library.NcclLibraryException;
import io.github.nccl4j.tools.support.Pattern;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Registers memory as a symmetric window, puts data into the window of the next rank, which calls no receive, and runs a
 * collective on memory in the window.
 *
 * <p>A rank sends from the first half of its window; the previous rank writes into the second half.
 */
@Command(
        name = "07-windows",
        aliases = {"07", "7", "windows"},
        sortOptions = false,
        description = {
            "Puts arrays into the next rank's window and all-reduces within windows; checks every element.",
            "",
            "If the library or the machine does not support windows, the sample prints why it is skipped, and succeeds.",
            ""
        })
final class Windows extends Sample {

    @Option(
            names = {"-c", "--count"},
            paramLabel = "N",
            defaultValue = "100000",
            description = "Elements of each rank. Default: ${DEFAULT-VALUE}.")
    private int count;

    @Option(
            names = {"-i", "--iters"},
            paramLabel = "N",
            defaultValue = "5",
            description = "Rounds of puts. Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Override
    void validate() {
        if (count < 1 || rounds < 1) {
            throw invalid("-c and -i must be at least 1: " + count + ", " + rounds);
        }
    }

    @Override
    void run(Communicator communicator) {
        try {
            NcclLibrary.get().require("ncclPutSignal");
            useWindow(communicator);
        } catch (NcclLibraryException | NoWindowException e) {
            // All ranks skip alike: they have the same library, and NCCL creates windows for all ranks or for none.
            skip(communicator, e.getMessage());
            return;
        }
        System.out.println(
                "rank " + communicator.rank() + ": " + rounds + " puts by the previous rank and a sum in windows, "
                        + count + " elements each, every element checked");
    }

    private void useWindow(Communicator communicator) {
        Device device = communicator.device();
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> memory = device.allocateForWindow(ElementType.FLOAT32, 2L * count);
                Window window = communicator.registerWindow(memory, WindowFlag.COLL_SYMMETRIC)) {
            DeviceBuffer<Float32> outgoing = memory.slice(0, count);
            DeviceBuffer<Float32> incoming = memory.slice(count, count);
            for (int round = 0; round < rounds; round++) {
                putToNext(communicator, window, outgoing, incoming, round, stream);
            }
            sum(communicator, outgoing, incoming, stream);
        }
    }

    private void putToNext(
            Communicator communicator,
            Window window,
            DeviceBuffer<Float32> outgoing,
            DeviceBuffer<Float32> incoming,
            int round,
            CudaStream stream) {
        int size = communicator.size();
        int next = (communicator.rank() + 1) % size;
        int previous = (communicator.rank() + size - 1) % size;
        pattern(communicator.rank(), round).write(outgoing);
        communicator.putSignal(outgoing, window, count, next, stream);
        communicator.waitSignal(previous, stream);
        communicator.work(stream).await();
        check(pattern(previous, round).compare(incoming), communicator, "round " + round + ", from rank " + previous);
        // Allow the previous rank to write again; write again when the next rank allows it.
        communicator.signal(previous, stream);
        communicator.waitSignal(next, stream);
    }

    /** The call is the same as without a window, but NCCL has faster algorithms for buffers in windows. */
    private void sum(
            Communicator communicator,
            DeviceBuffer<Float32> outgoing,
            DeviceBuffer<Float32> incoming,
            CudaStream stream) {
        communicator.work(stream).await();
        pattern(communicator.rank(), rounds).write(outgoing);
        communicator.allReduce(outgoing, incoming, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        Pattern sum = IntStream.range(0, communicator.size())
                .mapToObj(rank -> pattern(rank, rounds))
                .reduce(Pattern::plus)
                .orElseThrow();
        check(sum.compare(incoming), communicator, "sum in windows");
    }

    private static Pattern pattern(int rank, int round) {
        return Pattern.of(rank * 37L + round);
    }
}
