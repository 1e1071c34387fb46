package io.github.nccl4j.benchmarks;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.openjdk.jmh.util.ListStatistics;

/**
 * How much of its processor core this thread had in each round. The core's other hyperthread may work as well, for another
 * virtual machine of the host even, which no clock and no counter of this one shows.
 *
 * <p>Multiplications that wait for each other take their time on either. Additions that wait for nothing, as much as the core
 * can do at a time, take up to twice as long beside another thread. So how many are done in the time of a multiplication
 * tells how much of the core there is, at whatever pace its clock runs.
 */
final class CoreShare {
    /** Of the most additions of all rounds: with fewer another thread was there. */
    private static final double ALL_OF_IT = 0.85;

    /** By round, the fewest that were seen at its beginning, between its loops and at its end. */
    private final double[] additions;

    CoreShare(int rounds) {
        additions = new double[rounds];
        Arrays.fill(additions, Double.MAX_VALUE);
    }

    private static native double additionsInAMultiplication();

    void look(int round) {
        additions[round] = Math.min(additions[round], additionsInAMultiplication());
    }

    /** The rounds with as many additions as any: all of them if the core was shared all the time. */
    int[] largest() {
        return rounds(true);
    }

    /** The other rounds. */
    int[] smaller() {
        return rounds(false);
    }

    private int[] rounds(boolean largest) {
        // Not by the most of all: an interrupt may have prolonged the multiplications.
        double least = ALL_OF_IT * new ListStatistics(additions).getPercentile(95);
        return IntStream.range(0, additions.length)
                .filter(round -> additions[round] >= least == largest)
                .toArray();
    }

    double additions(int round) {
        return additions[round];
    }
}
