package io.github.nccl4j.tests.host;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.UniqueId;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;

/**
 * A rank that reduces until another one is killed or stopped: {@code main(id, rank, size, other, folder)}. Makes a file in
 * the folder when it is amid its loop; then prints when it learned of the end and how, and the sum without the other rank.
 */
final class SurvivalScenarios {
    private static final int ELEMENTS = 50_000;

    private SurvivalScenarios() {}

    public static void main(String... args) throws IOException {
        UniqueId id = UniqueId.of(HexFormat.of().parseHex(args[0]));
        int rank = Integer.parseInt(args[1]);
        int size = Integer.parseInt(args[2]);
        int other = Integer.parseInt(args[3]);
        Path ready = Path.of(args[4], args[1]);
        try (Communicator all = Communicator.create(id, rank, size);
                CudaStream stream = CudaStream.nonBlocking(Device.host());
                DeviceBuffer<Int64> numbers = Device.host().allocate(ElementType.INT64, ELEMENTS)) {
            NcclResultException lost = null;
            for (int call = 0; lost == null; call++) {
                try {
                    sum(all, numbers, stream, rank);
                } catch (NcclResultException failure) {
                    lost = failure;
                }
                if (call == 5) {
                    Files.createFile(ready);
                }
            }
            System.out.println("> " + System.currentTimeMillis());
            System.out.println("> " + lost.getClass().getSimpleName() + ": "
                    + lost.getMessage().lines().findFirst().orElse("")
                    + " " + lost.lastError());
            try (Communicator rest = all.shrink(List.of(other), ShrinkFlag.ABORT)) {
                System.out.println("> sum " + sum(rest, numbers, stream, rank) + " of " + rest.size());
            }
        }
    }

    /** The sum of the ranks' numbers, if all elements have it, else -1. */
    private static long sum(Communicator communicator, DeviceBuffer<Int64> numbers, CudaStream stream, int mine) {
        numbers.fill((long) mine);
        communicator.allReduce(numbers, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        long[] sums = new long[ELEMENTS];
        numbers.copyTo(sums);
        for (long sum : sums) {
            if (sum != sums[0]) {
                return -1;
            }
        }
        return sums[0];
    }
}
