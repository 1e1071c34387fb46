package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.UniqueId;
import java.util.HexFormat;
import java.util.List;

/** A rank in a process of its own: {@code main(id, rank, size, the rank that dies)}. Prints what it saw. */
final class RegroupScenarios {
    private RegroupScenarios() {}

    public static void main(String... args) {
        UniqueId id = UniqueId.of(HexFormat.of().parseHex(args[0]));
        int rank = Integer.parseInt(args[1]);
        int size = Integer.parseInt(args[2]);
        int dying = Integer.parseInt(args[3]);
        try (Communicator all = Communicator.create(id, rank, size);
                DeviceBuffer<Int32> number = Device.host().allocate(ElementType.INT32, 1)) {
            for (int step = 0; ; step++) {
                if (rank == dying && step == 10) {
                    // As a kill: nothing is closed, nobody is told.
                    Runtime.getRuntime().halt(9);
                }
                try {
                    sum(all, number, rank);
                } catch (NcclRemoteException lost) {
                    System.out.println(
                            "lost rank " + dying + " " + lost.getMessage().contains("rank " + dying));
                    break;
                }
            }
            try (Communicator rest = all.shrink(List.of(dying), ShrinkFlag.ABORT)) {
                System.out.println(
                        rest.rank() + " of " + rest.size() + " has " + sum(rest, number, rank) + ", " + all.state());
            }
        }
        System.out.println("closed");
    }

    private static int sum(Communicator communicator, DeviceBuffer<Int32> number, int mine) {
        number.fill(mine);
        communicator.allReduce(number, ReduceOp.SUM, RankThreads.STREAM);
        int[] sum = new int[1];
        number.copyTo(sum);
        return sum[0];
    }
}
