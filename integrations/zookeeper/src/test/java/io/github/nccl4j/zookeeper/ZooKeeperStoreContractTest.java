package io.github.nccl4j.zookeeper;

import io.github.nccl4j.launch.Store;
import io.github.nccl4j.tools.support.ProcessesContract;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;

/** The contract of {@link Store}, kept by a store on ZooKeeper. */
class ZooKeeperStoreContractTest extends ProcessesContract {
    @AutoClose
    private static Ensemble ensemble;

    private final String job = ensemble.job();

    @BeforeAll
    static void start() throws Exception {
        ensemble = new Ensemble();
    }

    @Override
    protected Store open(int rank) {
        return ensemble.open(job, rank, SIZE);
    }
}
