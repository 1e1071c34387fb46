package io.github.nccl4j.samples.support;

import java.util.Locale;

/** The table that the programs of nccl-tests print, with the average bandwidth of all that is in it. Not thread-safe. */
public final class PerformanceTable {

    private final boolean cpuTime;
    private double busSum;
    private int busCount;
    private int wrongResults;

    /**
     * Begins a table.
     *
     * @param cpuTime whether the times are those of the calls, not of the work
     */
    public PerformanceTable(boolean cpuTime) {
        this.cpuTime = cpuTime;
    }

    /** {@return the lines above the first row} */
    public String header() {
        String empty = format("# %10s  %12s  %8s  %6s  %6s", "", "", "", "", "");
        return String.join(
                System.lineSeparator(),
                "#",
                empty + "           out-of-place                       in-place          ",
                format("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root")
                        + format("  %7s  %6s  %6s  %6s", cpuTime ? "cputime" : "time", "algbw", "busbw", "#wrong")
                                .repeat(2),
                format("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "")
                        + format("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "")
                                .repeat(2));
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
