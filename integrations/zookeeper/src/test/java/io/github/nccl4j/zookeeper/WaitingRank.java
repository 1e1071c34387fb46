package io.github.nccl4j.zookeeper;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tools.launch.Signals;
import java.time.Duration;

/** A rank of a process of its own that waits in its second collective for the last rank, which stops its process. */
final class WaitingRank {
    static final String JOB = "waiting";

    private WaitingRank() {}

    /** {@code WaitingRank ENSEMBLE RANK SIZE}. Ends when the last rank is lost, and its input has ended. */
    public static void main(String[] arguments) throws Exception {
        int rank = Integer.parseInt(arguments[1]);
        int size = Integer.parseInt(arguments[2]);
        try (ZooKeeperStore store = ZooKeeperStore.builder(arguments[0])
                        .timeout(Ensemble.LIMIT)
                        .open(Ensemble.rank(JOB, rank, size));
                Communicator communicator = Communicator.builder()
                        .device(Device.host())
                        .deadline(Duration.ofMinutes(4))
                        .create(store);
                DeviceBuffer<Int32> buffer = Device.host().allocate(ElementType.INT32, 64)) {
            CudaStream stream = CudaStream.defaultOf(Device.host());
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            if (rank == size - 1) {
                Signals.send("STOP", ProcessHandle.current().pid());
            }
            try {
                communicator.allReduce(buffer, ReduceOp.SUM, stream);
                communicator.work(stream).await();
            } catch (NcclRemoteException lost) {
                System.out.println(lost.getMessage());
                communicator.abort();
                System.in.read();
            }
        }
    }
}
