package io.github.nccl4j.tests.launch;

import io.github.nccl4j.launch.Store;
import io.github.nccl4j.tools.support.ProcessesContract;
import org.junit.jupiter.api.AfterEach;

/** The contract of {@link Store}, kept by a store over TCP. */
class TcpStoreContractTest extends ProcessesContract {
    private final Job job = new Job();

    @AfterEach
    void end() {
        job.close();
    }

    @Override
    protected Store open(int rank) {
        return job.open(job.rank(rank, SIZE), Job.settings());
    }
}
