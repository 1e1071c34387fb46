package io.github.nccl4j.tools.perf;

/** The sources of the elements in a part of a buffer. */
enum Source {
    /** The data of one rank. */
    RANK,
    /** The reduced data of all ranks. */
    REDUCED,
    /** The initial content of the buffer. */
    UNTOUCHED
}
