package io.github.nccl4j.samples.perf;

/** Where results go. Used by the thread with rank 0 alone. */
interface Results {
    void add(Row row);
}
