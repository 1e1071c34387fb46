package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.Store;

/** A store that a test has not rigged yet is the store behind it. */
class RiggedStoreTest extends MemoryStoreTest {
    @Override
    protected Store open(int rank) {
        return new RiggedStore(super.open(rank));
    }
}
