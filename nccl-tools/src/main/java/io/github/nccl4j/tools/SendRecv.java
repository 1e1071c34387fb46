package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.tools.support.Mismatch;
import io.github.nccl4j.tools.support.Pattern;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Passes arrays around a ring: each rank sends to the next rank and receives from the previous one, in one group. */
@Command(
        name = "02-send-recv",
        aliases = {"02", "2", "send-recv"},
        sortOptions = false,
        description = {
            "Passes arrays around a ring of ranks with send and receive in one group; checks every element.",
            ""
        })
final class SendRecv extends Sample {

    private static final long GROWTH_FACTOR = 8;

    @Option(
            names = {"-e", "--maxbytes"},
            paramLabel = "SIZE",
            defaultValue = "4M",
            converter = SizeConverter.class,
            description =
                    "Largest size in bytes; suffixes K, M, G. Sizes grow eightfold from 4 bytes. Default: ${DEFAULT-VALUE}.")
    private long maxBytes;

    @Override
    void validate() {
        if (maxBytes < Float.BYTES) {
            throw invalid("-e must be at least the size of one float, " + Float.BYTES + ": " + maxBytes);
        }
    }

    @Override
    void run(Communicator communicator) {
        Device device = communicator.device();
        int rank = communicator.rank();
        int next = (rank + 1) % communicator.size();
        int previous = (rank + communicator.size() - 1) % communicator.size();
        long largest = maxBytes / Float.BYTES;
        int sizes = 0;
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> send = device.allocate(ElementType.FLOAT32, largest);
                DeviceBuffer<Float32> receive = device.allocate(ElementType.FLOAT32, largest)) {
            for (long count = 1; ; count = Math.min(largest, count * GROWTH_FACTOR)) {
                DeviceBuffer<Float32> outgoing = send.slice(0, count);
                DeviceBuffer<Float32> incoming = receive.slice(0, count);
                pattern(rank, count).write(outgoing);
                incoming.fill(Float.NaN);
                // Without a group all ranks would deadlock: each would wait in send for a receiver.
                try (Group group = Group.open()) {
                    communicator.send(outgoing, next, stream);
                    communicator.recv(incoming, previous, stream);
                    group.launch();
                }
                communicator.work(stream).await();
                Mismatch mismatch = pattern(previous, count).compare(incoming);
                check(mismatch, communicator, count + " floats from rank " + previous);
                sizes++;
                if (count == largest) {
                    break;
                }
            }
        }
        System.out.println("rank " + rank + " sent to rank " + next + " and received from rank " + previous + ": "
                + sizes + " sizes from 4 to " + largest * Float.BYTES + " bytes, every element checked");
    }

    private static Pattern pattern(int rank, long count) {
        return Pattern.of(rank * 37L + count);
    }
}
