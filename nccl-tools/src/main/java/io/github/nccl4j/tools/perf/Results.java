package io.github.nccl4j.tools.perf;

/** Receives the results. Only the thread with rank 0 uses it. */
interface Results {
    void add(Row row);
}
