package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.TcpStore;
import java.time.Duration;

/** One rank of a job, in a process of its own, which learns from its environment who it is. */
final class JobScenario {
    private static final Duration DEADLINE = Duration.ofSeconds(50);

    private JobScenario() {}

    /** Adds up the ranks of two communicators, and of one that is made by a rendezvous of the program's. */
    public static void main(String[] args) {
        try (Communicator first = Communicator.builder().deadline(DEADLINE).fromEnvironment();
                Communicator second = Communicator.builder().deadline(DEADLINE).fromEnvironment()) {
            System.out.println("rank " + first.rank() + " of " + first.size() + ": " + sum(first) + " " + sum(second));
            if (first.size() > 1) {
                TcpStore store = TcpStore.ofProcess(RankInfo.fromEnvironment(), DEADLINE);
                Rendezvous own = store.scope("mine");
                for (int i = 0; i < 3; i++) {
                    try (Communicator third = Communicator.builder()
                            .device(first.device())
                            .deadline(DEADLINE)
                            .create(own)) {
                        System.out.println("again: " + sum(third));
                    }
                }
                store.close();
                store.barrier("the store of the process stays open", DEADLINE);
            }
        }
    }

    private static int sum(Communicator communicator) {
        try (DeviceBuffer<Int32> buffer = communicator.device().allocate(ElementType.INT32, 1);
                CudaStream stream = CudaStream.nonBlocking(communicator.device())) {
            buffer.copyFrom(new int[] {1 + communicator.rank()});
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            communicator.work(stream).await();
            int[] sum = new int[1];
            buffer.copyTo(sum);
            return sum[0];
        }
    }
}
