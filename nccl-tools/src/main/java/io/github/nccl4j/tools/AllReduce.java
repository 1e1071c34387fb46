package io.github.nccl4j.tools;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.support.Bandwidth;
import io.github.nccl4j.tools.support.ByteSize;
import io.github.nccl4j.tools.support.Pattern;
import io.github.nccl4j.tools.support.PerformanceTable;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Sums float arrays of growing size over all ranks, and prints the table of nccl-tests' all_reduce_perf. */
@Command(
        name = "01-all-reduce",
        aliases = {"01", "1", "all-reduce"},
        sortOptions = false,
        description = {
            "Sums float arrays over all ranks; checks each size element by element and measures its time.",
            "",
            "Prints the table of nccl-tests' all_reduce_perf, with the times of rank 0. A wrong element on any rank fails the "
                    + "run.",
            ""
        })
final class AllReduce extends Sample {

    private static final long LARGEST_ON_HOST = ByteSize.parse("4M");
    private static final long LARGEST_ON_GPU = ByteSize.parse("1G");

    @Option(
            names = {"-b", "--minbytes"},
            paramLabel = "SIZE",
            defaultValue = "8",
            converter = SizeConverter.class,
            description = "Smallest size in bytes; suffixes K, M, G. Default: ${DEFAULT-VALUE}.")
    private long minBytes;

    @Option(
            names = {"-e", "--maxbytes"},
            paramLabel = "SIZE",
            converter = SizeConverter.class,
            description = "Largest size. Default: 1G, or 4M on the host engine.")
    private Long maxBytes;

    @Option(
            names = {"-f", "--stepfactor"},
            paramLabel = "F",
            defaultValue = "2",
            description = "Factor from one size to the next. Default: ${DEFAULT-VALUE}.")
    private int factor;

    @Option(
            names = {"-w", "--warmup-iters"},
            paramLabel = "N",
            defaultValue = "5",
            description = "Calls before the measurement. Default: ${DEFAULT-VALUE}.")
    private int warmup;

    @Option(
            names = {"-i", "--iters"},
            paramLabel = "N",
            defaultValue = "20",
            description = "Calls in the measurement. Default: ${DEFAULT-VALUE}.")
    private int iterations;

    @Override
    void validate() {
        if (minBytes < Float.BYTES) {
            throw invalid("-b must be at least the size of one float, " + Float.BYTES + ": " + minBytes);
        }
        if (maxBytes != null && maxBytes < minBytes) {
            throw invalid("-e must not be less than -b: " + maxBytes + " < " + minBytes);
        }
        if (factor < 2) {
            throw invalid("-f must be at least 2: " + factor);
        }
        if (warmup < 0 || iterations < 1) {
            throw invalid("-w must be at least 0 and -i at least 1: " + warmup + ", " + iterations);
        }
    }

    @Override
    void run(Communicator communicator) {
        Device device = communicator.device();
        long largest = maxBytes == null ? defaultLargest(device) : maxBytes;
        PerformanceTable table = new PerformanceTable(false);
        try (CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Float32> send = device.allocate(ElementType.FLOAT32, largest / Float.BYTES);
                DeviceBuffer<Float32> receive = device.allocate(ElementType.FLOAT32, largest / Float.BYTES)) {
            printAtRoot(communicator, table.header());
            for (long bytes = minBytes; ; bytes *= factor) {
                DeviceBuffer<Float32> from = send.slice(0, bytes / Float.BYTES);
                DeviceBuffer<Float32> to = receive.slice(0, bytes / Float.BYTES);
                double outOfPlace = measure(communicator, from, to, stream);
                double inPlace = measure(communicator, from, from, stream);
                printAtRoot(
                        communicator,
                        PerformanceTable.columns(bytes, from.length(), "float", "sum", -1)
                                + cell(table, bytes, outOfPlace, communicator)
                                + cell(table, bytes, inPlace, communicator));
                if (bytes > largest / factor) {
                    break;
                }
            }
            // A rank with a wrong element fails and does not reach this barrier.
            barrier(communicator, send, stream);
        }
        printAtRoot(communicator, table.footer());
    }

    /** The number of wrong elements is 0: {@link #measure} throws if there are any. */
    private static String cell(PerformanceTable table, long bytes, double micros, Communicator communicator) {
        return table.cell(
                micros,
                Bandwidth.algorithm(bytes, micros),
                Bandwidth.allReduceBus(bytes, micros, communicator.size()),
                0L);
    }

    private long defaultLargest(Device device) {
        return Math.max(minBytes, device.isHost() ? LARGEST_ON_HOST : LARGEST_ON_GPU);
    }

    /** Checks one call on known data, then returns the average time of further calls in microseconds. */
    private double measure(
            Communicator communicator, DeviceBuffer<Float32> send, DeviceBuffer<Float32> receive, CudaStream stream) {
        receive.fill(Float.NaN);
        pattern(communicator.rank(), send.length()).write(send);
        communicator.allReduce(send, receive, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        Pattern sum = IntStream.range(0, communicator.size())
                .mapToObj(rank -> pattern(rank, send.length()))
                .reduce(Pattern::plus)
                .orElseThrow();
        String form = receive == send ? "in place" : "out of place";
        check(sum.compare(receive), communicator, "all-reduce of " + send.sizeInBytes() + " bytes, " + form);

        for (int i = 0; i < warmup; i++) {
            communicator.allReduce(send, receive, ReduceOp.SUM, stream);
        }
        barrier(communicator, send, stream);
        long start = System.nanoTime();
        for (int i = 0; i < iterations; i++) {
            communicator.allReduce(send, receive, ReduceOp.SUM, stream);
        }
        // work(stream).await() polls with pauses, which would add to the time; synchronize() does not.
        stream.synchronize();
        return (System.nanoTime() - start) / 1e3 / iterations;
    }

    private static Pattern pattern(int rank, long count) {
        return Pattern.of(rank * 37L + count);
    }

    /** Waits for all ranks: an all-reduce of one element, after the work already in the stream. */
    private static void barrier(Communicator communicator, DeviceBuffer<Float32> buffer, CudaStream stream) {
        communicator.allReduce(buffer.slice(0, 1), ReduceOp.SUM, stream);
        communicator.work(stream).await();
    }
}
