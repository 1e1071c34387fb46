package io.github.nccl4j.tools.perf;

/** A row of the table: the measurements of a size, out of place and in place. */
record Row(
        long bytes, long count, String type, String operator, int root, Measurement outOfPlace, Measurement inPlace) {}
