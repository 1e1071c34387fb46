package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorBuilder;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.TcpStore;
import java.time.Duration;

/** One rank of a job, in a process of its own, that chooses no device. */
final class DeviceOfRankScenario {
    private static final Duration DEADLINE = Duration.ofSeconds(50);

    private DeviceOfRankScenario() {}

    public static void main(String[] args) {
        RankInfo self = RankInfo.fromEnvironment();
        CommunicatorBuilder builder = Communicator.builder().deadline(DEADLINE);
        try (TcpStore store = TcpStore.open(self)) {
            if (self.hasLocalRank()) {
                System.out.println("of local rank: " + Device.ofLocalRank(self.localRank()) + ", "
                        + Device.ofLocalRank(self.localRank() + 2));
                try (Communicator communicator = builder.create(store.scope("plain"))) {
                    System.out.println("create: " + communicator.device());
                }
            }
            try (Recovery recovery = Recovery.begin(store, "test", builder)) {
                System.out.println("begin: " + recovery.communicator().device());
                System.out.println("recover: " + recovery.recover(DEADLINE).device());
            }
        }
    }
}
