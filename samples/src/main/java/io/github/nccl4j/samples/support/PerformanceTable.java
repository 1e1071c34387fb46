package io.github.nccl4j.samples.support;

import java.util.Locale;

/** The table that nccl-tests' all_reduce_perf prints, with the average bandwidth of all that is in it. Not thread-safe. */
public final class PerformanceTable {

    private final int ranks;
    private double busSum;
    private int busCount;

    /**
     * Begins a table.
     *
     * @param ranks the number of ranks
     */
    public PerformanceTable(int ranks) {
        this.ranks = ranks;
    }

    /** {@return the lines above the first row} */
    public String header() {
        String empty = format("# %10s  %12s  %8s  %6s  %6s", "", "", "", "", "");
        return String.join(
                System.lineSeparator(),
                "#",
                empty + "           out-of-place                       in-place          ",
                format("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root")
                        + format("  %7s  %6s  %6s %6s", "time", "algbw", "busbw", "#wrong")
                                .repeat(2),
                format("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "")
                        + format("  %7s  %6s  %6s  %5s", "(us)", "(GB/s)", "(GB/s)", "")
                                .repeat(2));
    }

    /**
     * One row, of sums of floats.
     *
     * @param count the number of elements
     * @param outOfPlaceMicros the time of a call with two buffers, in microseconds
     * @param inPlaceMicros the time of a call with one buffer
     * @return the row; whoever prints it has checked that no element is wrong
     */
    public String row(long count, double outOfPlaceMicros, double inPlaceMicros) {
        return format("%12d  %12d  %8s  %6s  %6d", count * Float.BYTES, count, "float", "sum", -1)
                + cell(count * Float.BYTES, outOfPlaceMicros)
                + cell(count * Float.BYTES, inPlaceMicros);
    }

    private String cell(long bytes, double micros) {
        double bus = Bandwidth.allReduceBus(bytes, micros, ranks);
        busSum += bus;
        busCount++;
        return format("  %7s  %6.2f  %6.2f  %5d", time(micros), Bandwidth.algorithm(bytes, micros), bus, 0);
    }

    private static String time(double micros) {
        if (micros >= 10000) {
            return format("%7.0f", micros);
        }
        return format(micros >= 100 ? "%7.1f" : "%7.2f", micros);
    }

    /** {@return the lines below the last row} */
    public String footer() {
        return "# Out of bounds values : 0 OK" + System.lineSeparator()
                + format("# Avg bus bandwidth    : %g", busSum / busCount);
    }

    private static String format(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
