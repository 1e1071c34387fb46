package io.github.nccl4j.samples;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FailurePolicy;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.Arrays;
import java.util.Locale;

/**
 * Sums float arrays of growing size over all ranks, and checks every element. Rank 0 prints the table of nccl-tests'
 * all_reduce_perf, with its own times.
 */
public final class AllReduce {

    /** Elements that are checked at a time: a multiple of 127, with which the data repeats. */
    private static final int CHUNK = 127 << 13;

    public static void main(String[] args) {
        long smallest = 8;
        long largest = 0;
        int factor = 2;
        int warmups = 5;
        int calls = 20;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-b" -> smallest = bytes(args[++i]);
                case "-e" -> largest = bytes(args[++i]);
                case "-f" -> factor = Integer.parseInt(args[++i]);
                case "-w" -> warmups = Integer.parseInt(args[++i]);
                case "-i" -> calls = Integer.parseInt(args[++i]);
                default -> throw new IllegalArgumentException("no such option: " + args[i]);
            }
        }
        if (smallest < Float.BYTES || largest > 0 && largest < smallest || factor < 2 || warmups < 0 || calls < 1) {
            throw new IllegalArgumentException(
                    "-b must be from 4 to -e, -f at least 2, -w 0 and -i 1: " + String.join(" ", args));
        }
        // ABORT: if a rank is lost, operations end that would otherwise keep the buffers.
        try (Communicator communicator =
                        Communicator.builder().onFailure(FailurePolicy.ABORT).fromEnvironment();
                CudaStream stream = CudaStream.nonBlocking(communicator.device())) {
            Device device = communicator.device();
            largest = largest > 0 ? largest : Math.max(smallest, device.isHost() ? 4 << 20 : 1 << 30);
            print(communicator, """
                    #                                                              out-of-place                       in-place
                    #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
                    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)""");
            try (DeviceBuffer<Float32> send = device.allocate(ElementType.FLOAT32, largest / Float.BYTES);
                    DeviceBuffer<Float32> receive = device.allocate(ElementType.FLOAT32, largest / Float.BYTES)) {
                for (long bytes = smallest; bytes <= largest; bytes *= factor) {
                    DeviceBuffer<Float32> from = send.slice(0, bytes / Float.BYTES);
                    DeviceBuffer<Float32> to = receive.slice(0, bytes / Float.BYTES);
                    String row =
                            String.format(Locale.ROOT, "%12d  %12d     float     sum      -1", bytes, from.length());
                    row += measure(communicator, from, to, stream, warmups, calls);
                    print(communicator, row + measure(communicator, from, from, stream, warmups, calls));
                }
                // A rank with a wrong element fails and does not come here.
                waitForAll(communicator, send, stream);
            }
            print(communicator, "# Out of bounds values : 0 OK");
        }
    }

    /** Checks one call, and returns the columns of the time of further calls. */
    private static String measure(
            Communicator communicator,
            DeviceBuffer<Float32> send,
            DeviceBuffer<Float32> receive,
            CudaStream stream,
            int warmups,
            int calls) {
        receive.fill(Float.NaN);
        write(send, communicator.rank() + 1);
        communicator.allReduce(send, receive, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        int ranks = communicator.size();
        check(receive, ranks * (ranks + 1) / 2, communicator.rank());

        for (int i = 0; i < warmups; i++) {
            communicator.allReduce(send, receive, ReduceOp.SUM, stream);
        }
        waitForAll(communicator, send, stream);
        long start = System.nanoTime();
        for (int i = 0; i < calls; i++) {
            communicator.allReduce(send, receive, ReduceOp.SUM, stream);
        }
        // work(stream).await() polls with pauses, which would add to the time; synchronize() does not.
        stream.synchronize();
        double micros = (System.nanoTime() - start) / 1e3 / calls;
        double algorithm = send.sizeInBytes() / micros / 1e3;
        return String.format(
                Locale.ROOT, "  %7.2f  %6.2f  %6.2f       0", micros, algorithm, algorithm * 2 * (ranks - 1) / ranks);
    }

    /** Element i is scale * (i % 127): sums of these are exact in float, for up to 500 ranks. */
    private static void write(DeviceBuffer<Float32> buffer, int scale) {
        float[] numbers = numbers(buffer, scale);
        for (long at = 0; at < buffer.length(); at += CHUNK) {
            long length = Math.min(numbers.length, buffer.length() - at);
            buffer.slice(at, length).copyFrom(Arrays.copyOf(numbers, (int) length));
        }
    }

    private static void check(DeviceBuffer<Float32> buffer, int scale, int rank) {
        float[] expected = numbers(buffer, scale);
        for (long at = 0; at < buffer.length(); at += CHUNK) {
            float[] got = new float[(int) Math.min(expected.length, buffer.length() - at)];
            buffer.slice(at, got.length).copyTo(got);
            int wrong = Arrays.mismatch(got, 0, got.length, expected, 0, got.length);
            if (wrong >= 0) {
                throw new IllegalStateException("rank " + rank + ": all-reduce of " + buffer.sizeInBytes()
                        + " bytes: element " + (at + wrong) + " is wrong: expected " + expected[wrong] + ", got "
                        + got[wrong]);
            }
        }
    }

    private static float[] numbers(DeviceBuffer<Float32> buffer, int scale) {
        float[] numbers = new float[(int) Math.min(CHUNK, buffer.length())];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = scale * (i % 127);
        }
        return numbers;
    }

    /** Waits for all ranks, after the work already in the stream. */
    private static void waitForAll(Communicator communicator, DeviceBuffer<Float32> buffer, CudaStream stream) {
        communicator.allReduce(buffer.slice(0, 1), ReduceOp.SUM, stream);
        communicator.work(stream).await();
    }

    private static void print(Communicator communicator, String line) {
        if (communicator.rank() == 0) {
            System.out.println(line);
        }
    }

    /** A number with K, M or G, or without. */
    private static long bytes(String text) {
        int unit = "KMG".indexOf(text.charAt(text.length() - 1)) + 1;
        return Long.parseLong(unit == 0 ? text : text.substring(0, text.length() - 1)) << 10 * unit;
    }
}
