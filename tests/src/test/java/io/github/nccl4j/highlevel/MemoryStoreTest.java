package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Store;
import io.github.nccl4j.tools.support.StoreContract;

/** The store of other tests keeps the contract of {@link Store}. */
class MemoryStoreTest extends StoreContract {
    private final MemoryStore memory = new MemoryStore(2);

    @Override
    protected Store open(int rank) {
        return memory.of(rank, 0);
    }
}
