package io.github.nccl4j.samples.perf;

/** Where the elements of a part of a buffer come from. */
enum Source {
    /** What one rank has made. */
    RANK,
    /** What all ranks have made, reduced. */
    REDUCED,
    /** Nobody: what the buffer was filled with before. */
    UNTOUCHED
}
