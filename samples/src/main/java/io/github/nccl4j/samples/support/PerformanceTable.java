package io.github.nccl4j.samples.support;

import java.util.Locale;

/** The table that the programs of nccl-tests print, with the average bandwidth of all that is in it. Not thread-safe. */
public final class PerformanceTable {

    private static final String ITERATIONS = "  %7s  %7s  %7s  %7s";

    private final boolean cpuTime;
    private final boolean perIteration;
    private double busSum;
    private int busCount;
    private int wrongResults;

    /**
     * Begins a table.
     *
     * @param cpuTime whether the times are those of the calls, not of the work
     */
    public PerformanceTable(boolean cpuTime) {
        this(cpuTime, false);
    }

    /**
     * Begins a table.
     *
     * @param cpuTime whether the times are those of the calls, not of the work
     * @param perIteration true for columns of the iterations behind each measurement
     */
    public PerformanceTable(boolean cpuTime, boolean perIteration) {
        this.cpuTime = cpuTime;
        this.perIteration = perIteration;
    }

    /** {@return the lines above the first row} */
    public String header() {
        String left = "# %10s  %12s  %8s  %6s  %6s";
        String names = format("  %7s  %6s  %6s  %6s", cpuTime ? "cputime" : "time", "algbw", "busbw", "#wrong");
        String units = format("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "");
        String placement = "           out-of-place                       in-place          ";
        if (perIteration) {
            names += format(ITERATIONS, "i_min", "i_max", "i_p99", "i_cv%");
            units += format(ITERATIONS, "(us)", "(us)", "(us)", "(%)");
            placement = "              out-of-place (+ per-iteration)"
                    + "                                in-place (+ per-iteration)";
        }
        return String.join(
                System.lineSeparator(),
                "#",
                format(left, "", "", "", "", "") + placement,
                format(left, "size", "count", "type", "redop", "root") + names.repeat(2),
                format(left, "(B)", "(elements)", "", "", "") + units.repeat(2));
    }

    /**
     * The left part of a row; two {@linkplain #cell cells} follow.
     *
     * @param bytes the size
     * @param count the count of the call
     * @param type the elements
     * @param operator the reduction
     * @param root the root, or -1
     * @return the columns
     */
    public static String columns(long bytes, long count, String type, String operator, int root) {
        return format("%12d  %12d  %8s  %6s  %6d", bytes, count, type, operator, root);
    }

    /**
     * One measurement of a row, which goes into the average.
     *
     * @param micros the time of a call in microseconds
     * @param algorithm algorithm bandwidth in GB/s
     * @param bus bus bandwidth in GB/s
     * @param wrong the number of wrong elements, or null if nobody looked
     * @return the columns
     */
    public String cell(double micros, double algorithm, double bus, Long wrong) {
        busSum += bus;
        busCount++;
        if (wrong != null && wrong > 0) {
            wrongResults++;
        }
        return format(
                "  %7s  %6s  %6s  %6s",
                number(micros, 7), number(algorithm, 6), number(bus, 6), wrong == null ? "N/A" : wrong);
    }

    /**
     * What a row has behind a {@linkplain #cell cell} about the iterations of its measurement.
     *
     * @param min the least time of a call in microseconds
     * @param max the most
     * @param p99 the time that 99 percent do not exceed
     * @param variation the standard deviation, in percent of the average
     * @return the columns
     */
    public static String iterations(double min, double max, double p99, double variation) {
        return format(ITERATIONS, number(min, 7), number(max, 7), number(p99, 7), number(variation, 7));
    }

    /** As many digits as fit. */
    private static String number(double value, int width) {
        for (int digits = 2; digits >= 0; digits--) {
            String text = format("%." + digits + "f", value);
            if (text.length() <= width) {
                return text;
            }
        }
        return format(width >= 7 ? "%.1e" : "%.0e", value);
    }

    /** {@return the average of all bus bandwidths, in GB/s} */
    public double averageBus() {
        return busCount == 0 ? 0 : busSum / busCount;
    }

    /** {@return how many measurements had wrong elements} */
    public int wrongResults() {
        return wrongResults;
    }

    /** {@return the lines below the last row} */
    public String footer() {
        return format("# %-20s : %d %s", "Out of bounds values", wrongResults, wrongResults == 0 ? "OK" : "FAILED")
                + System.lineSeparator()
                + format("# %-20s : %g ", "Avg bus bandwidth", averageBus());
    }

    private static String format(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
