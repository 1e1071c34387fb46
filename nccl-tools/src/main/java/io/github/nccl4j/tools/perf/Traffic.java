package io.github.nccl4j.tools.perf;

import io.github.nccl4j.tools.launch.CommandErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The number of bytes between each pair of ranks in {@code alltoallv}: from a file, or by the distance between the ranks as in
 * nccl-tests. All numbers are multiples of 16. Immutable.
 */
final class Traffic {
    private static final long ALIGNMENT = 16;

    private final double spread;
    private final long[][] matrix;

    private Traffic(double spread, long[][] matrix) {
        this.spread = spread;
        this.matrix = matrix;
    }

    /** Traffic by distance. 0: equal for all pairs; 1: proportional to the distance, and 0 from a rank to itself. */
    static Traffic spread(double spread) {
        if (!(spread >= 0 && spread <= 1)) {
            throw new IllegalArgumentException("--spread must be from 0 to 1: " + spread);
        }
        return new Traffic(spread, null);
    }

    /** Traffic from a file: row s, column r contains the number of bytes from rank s to rank r. */
    static Traffic file(Path file, double scale) {
        List<long[]> rows = new ArrayList<>();
        try {
            for (String line : Files.readAllLines(file)) {
                if (!line.isBlank()) {
                    rows.add(row(line.strip().split("\\s+"), scale));
                }
            }
        } catch (IOException e) {
            throw new IllegalArgumentException("can't read the matrix: " + CommandErrors.reason(e), e);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(file + ", row " + (rows.size() + 1) + ": " + e.getMessage(), e);
        }
        for (int i = 0; i < rows.size(); i++) {
            if (rows.get(i).length != rows.size()) {
                throw new IllegalArgumentException(file + " must have as many columns as rows: row " + (i + 1) + " has "
                        + rows.get(i).length + ", there are " + rows.size() + " rows");
            }
        }
        return new Traffic(0, rows.toArray(long[][]::new));
    }

    private static long[] row(String[] words, double scale) {
        long[] row = new long[words.length];
        for (int i = 0; i < row.length; i++) {
            double bytes = Double.parseDouble(words[i]) * scale;
            if (!(bytes >= 0 && bytes <= Long.MAX_VALUE)) {
                throw new NumberFormatException("not a number of bytes: " + words[i]);
            }
            row[i] = (long) bytes / ALIGNMENT * ALIGNMENT;
        }
        return row;
    }

    boolean isMatrix() {
        return matrix != null;
    }

    void requireRanks(int ranks) {
        if (matrix != null && matrix.length < ranks) {
            throw new IllegalArgumentException("the matrix is for " + matrix.length + " ranks, and there are " + ranks);
        }
    }

    /** The bytes from one rank to another, if each rank sends {@code total} bytes. */
    long bytes(int from, int to, int ranks, long total) {
        if (matrix != null) {
            return matrix[from][to];
        }
        if (ranks == 1) {
            return total / ALIGNMENT * ALIGNMENT;
        }
        int distance = Math.floorMod(to - from, ranks);
        double even = (double) total / ranks;
        double weighted = (double) distance * total / (ranks * (ranks - 1) / 2.0);
        return (long) ((1 - spread) * even + spread * weighted) / ALIGNMENT * ALIGNMENT;
    }

    /** The number of elements that a rank sends to each rank. */
    long[] sends(int rank, int ranks, long total, int elementSize) {
        long[] counts = new long[ranks];
        for (int peer = 0; peer < ranks; peer++) {
            counts[peer] = bytes(rank, peer, ranks, total) / elementSize;
        }
        return counts;
    }

    /** The number of elements that a rank receives from each rank. */
    long[] receives(int rank, int ranks, long total, int elementSize) {
        long[] counts = new long[ranks];
        for (int peer = 0; peer < ranks; peer++) {
            counts[peer] = bytes(peer, rank, ranks, total) / elementSize;
        }
        return counts;
    }

    /** The displacements of contiguous blocks. */
    static long[] displacements(long[] counts) {
        long[] displacements = new long[counts.length];
        for (int i = 1; i < counts.length; i++) {
            displacements[i] = displacements[i - 1] + counts[i - 1];
        }
        return displacements;
    }

    static long sum(long[] counts) {
        long sum = 0;
        for (long count : counts) {
            sum += count;
        }
        return sum;
    }
}
