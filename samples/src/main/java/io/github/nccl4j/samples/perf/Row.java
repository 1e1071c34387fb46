package io.github.nccl4j.samples.perf;

/** A line of the table. */
record Row(
        long bytes, long count, String type, String operator, int root, Measurement outOfPlace, Measurement inPlace) {}
