package io.github.nccl4j.tools.status;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import java.time.Duration;

/** A rank in two communicators, of which the last rank stops its process before its fourth collective. */
public final class ObservedRank {
    private static final Duration LIMIT = Duration.ofMinutes(4);

    private ObservedRank() {}

    /**
     * Runs until it is killed.
     *
     * @param args none
     * @throws Exception if a call fails
     */
    public static void main(String[] args) throws Exception {
        RankInfo self = RankInfo.fromEnvironment();
        TcpStore job = TcpStore.ofProcess(self, LIMIT);
        Communicator all =
                Communicator.builder().device(Device.host()).deadline(LIMIT).create(job.scope("all"));
        Communicator half = all.split(self.rank() % 2, self.rank());
        CudaStream stream = CudaStream.defaultOf(Device.host());
        DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 64);
        for (int i = 0; i < 3; i++) {
            all.allReduce(buffer, buffer, ReduceOp.SUM, stream);
            all.work(stream).await();
        }
        half.allReduce(buffer, buffer, ReduceOp.SUM, stream);
        half.work(stream).await();
        System.out.println("pid " + ProcessHandle.current().pid());
        if (self.rank() == 2) {
            io.github.nccl4j.tools.launch.Signals.send(
                    "STOP", ProcessHandle.current().pid());
        }
        all.allReduce(buffer, buffer, ReduceOp.SUM, stream);
        all.work(stream).await();
    }
}
