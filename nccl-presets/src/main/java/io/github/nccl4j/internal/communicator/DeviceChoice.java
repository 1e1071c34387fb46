package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.Store;
import java.time.Duration;
import java.util.function.Supplier;

/**
 * The choice of the device of a rank that is about to create a communicator.
 *
 * @param device the device that the program has chosen, or its default
 * @param isGiven true if the program has chosen one
 * @param deadline the time to wait for other ranks
 */
public record DeviceChoice(Supplier<NativeDevice> device, boolean isGiven, Duration deadline) {
    /** This process among the ranks that its launcher started, or null. */
    private static RankInfo launched() {
        try {
            RankInfo self = RankInfo.fromEnvironment();
            return self.worldSize() == 1 ? null : self;
        } catch (IllegalArgumentException incomplete) {
            // Nothing that a program with a rendezvous of its own needs.
            return null;
        }
    }

    public OwnDevice chosen() {
        return OwnDevice.of(device);
    }

    public OwnDevice ofProcess() {
        RankInfo self = launched();
        return self != null && self.hasLocalRank() ? ofRank(self) : chosen();
    }

    public OwnDevice ofRank(RankInfo self) {
        return isGiven ? chosen() : self.hasLocalRank() ? OwnDevice.start(self) : OwnDevice.unlocated(self);
    }

    /** Finds the device of a rank without a local rank. Collective: all ranks take part, even if only one needs it. */
    public OwnDevice locate(OwnDevice own, RankInfo self, Rendezvous all) {
        if (self.hasLocalRank()) {
            return own;
        }
        RankInfo located = new RankHandshake(all, deadline).locate(own, self);
        return isGiven ? own : OwnDevice.start(located);
    }

    /**
     * Returns the device of a rank that comes to a store of all ranks, for each communicator that it makes there. Collective
     * among the first processes of the ranks if the launcher has not set the local rank.
     */
    public OwnDevice ofStore(Store store, String scope) {
        RankInfo self = launched();
        boolean isRank = self != null && self.rank() == store.rank() && self.worldSize() == store.size();
        return isRank && store.attempt() == 0 ? locate(ofRank(self), self, store.scope(scope)) : ofProcess();
    }
}
