package io.github.nccl4j.benchmarks;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.openjdk.jmh.util.ListStatistics;

/**
 * The share of its processor core that this thread had in each round. The core's other hyperthread may be busy, even
 * for another virtual machine of the host, which no clock and no counter of this machine shows.
 *
 * <p>Dependent multiplications take the same time in both cases. Independent additions, which fill the core, take up to
 * twice as long beside another thread. Therefore the number of additions in the time of a multiplication measures the
 * share of the core, at any clock rate.
 */
final class CoreShare {
    /** The fraction of the largest number of additions below which another thread used the core. */
    private static final double ALL_OF_IT = 0.85;

    /** By round: the smallest number of additions, measured at its beginning, between its loops and at its end. */
    private final double[] additions;

    CoreShare(int rounds) {
        additions = new double[rounds];
        Arrays.fill(additions, Double.MAX_VALUE);
    }

    private static native double additionsInAMultiplication();

    void look(int round) {
        additions[round] = Math.min(additions[round], additionsInAMultiplication());
    }

    /** The rounds with the most additions: all rounds if the core was shared all the time. */
    int[] largest() {
        return rounds(true);
    }

    /** The other rounds. */
    int[] smaller() {
        return rounds(false);
    }

    private int[] rounds(boolean largest) {
        // Not compared with the maximum: an interrupt may have prolonged the multiplications.
        double least = ALL_OF_IT * new ListStatistics(additions).getPercentile(95);
        return IntStream.range(0, additions.length)
                .filter(round -> additions[round] >= least == largest)
                .toArray();
    }

    double additions(int round) {
        return additions[round];
    }
}
