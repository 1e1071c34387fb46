package io.github.nccl4j.tools.support;

import java.util.Locale;

/** Formats the table that the programs of nccl-tests print, and averages its bus bandwidths. Not thread-safe. */
public final class PerformanceTable {

    private static final String ITERATIONS = "  %7s  %7s  %7s  %7s";

    private final boolean cpuTime;
    private final boolean perIteration;
    private double busSum;
    private int busCount;
    private int wrongResults;

    /**
     * Creates a table without columns for iterations.
     *
     * @param cpuTime true if the times are CPU times of the calls, false if they include the work
     */
    public PerformanceTable(boolean cpuTime) {
        this(cpuTime, false);
    }

    /**
     * Creates a table.
     *
     * @param cpuTime true if the times are CPU times of the calls, false if they include the work
     * @param perIteration true for additional columns with statistics of the iterations
     */
    public PerformanceTable(boolean cpuTime, boolean perIteration) {
        this.cpuTime = cpuTime;
        this.perIteration = perIteration;
    }

    /** {@return the heading, several lines} */
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
     * Formats the left part of a row; two {@linkplain #cell cells} follow it.
     *
     * @param bytes the size in bytes
     * @param count the count of the call, in elements
     * @param type the element type
     * @param operator the reduction operator
     * @param root the root, or -1
     * @return the columns
     */
    public static String columns(long bytes, long count, String type, String operator, int root) {
        return format("%12d  %12d  %8s  %6s  %6d", bytes, count, type, operator, root);
    }

    /**
     * Formats a measurement and adds it to the average.
     *
     * @param micros the time of a call in microseconds
     * @param algorithm the algorithm bandwidth in GB/s
     * @param bus the bus bandwidth in GB/s
     * @param wrong the number of wrong elements, or null if they were not counted
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
     * Formats the statistics of iterations, which follow a {@linkplain #cell cell}.
     *
     * @param min the shortest time of a call in microseconds
     * @param max the longest time of a call in microseconds
     * @param p99 the 99th percentile in microseconds
     * @param variation the standard deviation in percent of the average
     * @return the columns
     */
    public static String iterations(double min, double max, double p99, double variation) {
        return format(ITERATIONS, number(min, 7), number(max, 7), number(p99, 7), number(variation, 7));
    }

    /** With as many fraction digits as fit, at most two. */
    private static String number(double value, int width) {
        for (int digits = 2; digits >= 0; digits--) {
            String text = format("%." + digits + "f", value);
            if (text.length() <= width) {
                return text;
            }
        }
        return format(width >= 7 ? "%.1e" : "%.0e", value);
    }

    /** {@return the average bus bandwidth in GB/s, 0 for an empty table} */
    public double averageBus() {
        return busCount == 0 ? 0 : busSum / busCount;
    }

    /** {@return the number of measurements with wrong elements} */
    public int wrongResults() {
        return wrongResults;
    }

    /** {@return the lines after the last row} */
    public String footer() {
        return format("# %-20s : %d %s", "Out of bounds values", wrongResults, wrongResults == 0 ? "OK" : "FAILED")
                + System.lineSeparator()
                + format("# %-20s : %g ", "Avg bus bandwidth", averageBus());
    }

    private static String format(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
