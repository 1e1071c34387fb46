package io.github.nccl4j.samples;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.samples.support.Bandwidth;
import io.github.nccl4j.samples.support.ByteSize;
import io.github.nccl4j.samples.support.Mismatch;
import io.github.nccl4j.samples.support.Pattern;
import io.github.nccl4j.samples.support.RankMemory;
import io.github.nccl4j.samples.support.RankSession;
import java.util.Locale;
import java.util.stream.IntStream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Sums float arrays over all ranks, in sizes from 8 bytes up, and prints the table that nccl-tests' all_reduce_perf prints. */
@Command(
        name = "01-all-reduce",
        aliases = {"01", "1", "all-reduce"},
        sortOptions = false,
        description = {
            "Sums float arrays over all ranks: each size is checked element by element and timed.",
            "",
            "The table is that of nccl-tests' all_reduce_perf, with the times and wrong elements of rank 0; a wrong element on "
                    + "any rank fails the run.",
            ""
        })
final class AllReduce extends Sample {

    private static final long LARGEST_ON_HOST = ByteSize.parse("4M");
    private static final long LARGEST_ON_GPU = ByteSize.parse("1G");
    private static final int POISON = 0xff;

    @Option(
            names = {"-b", "--minbytes"},
            paramLabel = "SIZE",
            defaultValue = "8",
            converter = SizeConverter.class,
            description = "Smallest size in bytes, with K, M or G. Default: ${DEFAULT-VALUE}.")
    private long minBytes;

    @Option(
            names = {"-e", "--maxbytes"},
            paramLabel = "SIZE",
            converter = SizeConverter.class,
            description = "Largest size. Default: 1G, or 4M on the host engine.")
    private Long maxBytes;

    @Option(
            names = {"-f", "--stepfactor"},
            paramLabel = "F",
            defaultValue = "2",
            description = "Factor from one size to the next. Default: ${DEFAULT-VALUE}.")
    private int factor;

    @Option(
            names = {"-w", "--warmup-iters"},
            paramLabel = "N",
            defaultValue = "5",
            description = "Calls before the clock starts. Default: ${DEFAULT-VALUE}.")
    private int warmup;

    @Option(
            names = {"-i", "--iters"},
            paramLabel = "N",
            defaultValue = "20",
            description = "Calls that are timed. Default: ${DEFAULT-VALUE}.")
    private int iterations;

    private double busSum;
    private int busCount;

    @Override
    void validate() {
        if (minBytes < Float.BYTES) {
            throw invalid("-b must be at least the size of one float, " + Float.BYTES + ": " + minBytes);
        }
        if (maxBytes != null && maxBytes < minBytes) {
            throw invalid("-e must not be less than -b: " + maxBytes + " < " + minBytes);
        }
        if (factor < 2) {
            throw invalid("-f must be at least 2: " + factor);
        }
        if (warmup < 0 || iterations < 1) {
            throw invalid("-w must be at least 0 and -i at least 1: " + warmup + ", " + iterations);
        }
    }

    @Override
    void run(RankSession session) {
        long largest = maxBytes == null ? defaultLargest(session) : maxBytes;
        long send = session.device().allocate(largest);
        long receive = session.device().allocate(largest);
        boolean root = session.self().rank() == 0;
        if (root) {
            printHeader();
        }
        long bytes = minBytes;
        while (true) {
            String row = row(session, send, receive, bytes / Float.BYTES);
            if (root) {
                System.out.println(row);
            }
            if (bytes > largest / factor) {
                break;
            }
            bytes *= factor;
        }
        session.barrier();
        if (root) {
            // Each rank checked its own elements and would have failed: no wrong ones are left to count.
            System.out.println("# Out of bounds values : 0 OK");
            System.out.println(format("# Avg bus bandwidth    : %g", busSum / busCount));
        }
    }

    private long defaultLargest(RankSession session) {
        return Math.max(minBytes, session.onHost() ? LARGEST_ON_HOST : LARGEST_ON_GPU);
    }

    private String row(RankSession session, long send, long receive, long count) {
        return format("%12d  %12d  %8s  %6s  %6d", count * Float.BYTES, count, "float", "sum", -1)
                + measured(session, send, receive, count, "out of place")
                + measured(session, send, send, count, "in place");
    }

    /** Checks one call on fresh data, then times calls on whatever the data become. */
    private String measured(RankSession session, long send, long receive, long count, String form) {
        Mismatch mismatch = checked(session, send, receive, count);
        check(mismatch, session, "all-reduce of " + count * Float.BYTES + " bytes, " + form);
        double micros = timed(session, send, receive, count);
        double bus = Bandwidth.allReduceBus(
                count * Float.BYTES, micros, session.self().worldSize());
        busSum += bus;
        busCount++;
        return format(
                "  %7s  %6.2f  %6.2f  %5d",
                time(micros), Bandwidth.algorithm(count * Float.BYTES, micros), bus, mismatch.count());
    }

    private static Mismatch checked(RankSession session, long send, long receive, long count) {
        RankMemory device = session.device();
        if (receive != send) {
            device.set(receive, POISON, count * Float.BYTES);
        }
        device.write(send, pattern(session.self().rank(), count), 0, count);
        allReduce(session, send, receive, count);
        device.synchronize();
        Pattern sum = IntStream.range(0, session.self().worldSize())
                .mapToObj(rank -> pattern(rank, count))
                .reduce(Pattern::plus)
                .orElseThrow();
        return device.compare(receive, sum, 0, count);
    }

    private static Pattern pattern(int rank, long count) {
        return Pattern.of(rank * 37L + count);
    }

    private double timed(RankSession session, long send, long receive, long count) {
        for (int i = 0; i < warmup; i++) {
            allReduce(session, send, receive, count);
        }
        session.barrier();
        long start = System.nanoTime();
        for (int i = 0; i < iterations; i++) {
            allReduce(session, send, receive, count);
        }
        session.device().synchronize();
        return (System.nanoTime() - start) / 1e3 / iterations;
    }

    private static void allReduce(RankSession session, long send, long receive, long count) {
        int result = nccl.ncclAllReduce(
                send, receive, count, nccl.ncclFloat, nccl.ncclSum, session.comm(), session.device().stream());
        if (result != nccl.ncclSuccess) {
            session.check(result, "ncclAllReduce of " + count + " floats");
        }
    }

    private static void printHeader() {
        String empty = format("# %10s  %12s  %8s  %6s  %6s", "", "", "", "", "");
        System.out.println("#");
        System.out.println(empty + "           out-of-place                       in-place          ");
        System.out.println(format("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root")
                + format("  %7s  %6s  %6s %6s", "time", "algbw", "busbw", "#wrong")
                        .repeat(2));
        System.out.println(format("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "")
                + format("  %7s  %6s  %6s  %5s", "(us)", "(GB/s)", "(GB/s)", "").repeat(2));
    }

    private static String time(double micros) {
        if (micros >= 10000) {
            return format("%7.0f", micros);
        }
        return format(micros >= 100 ? "%7.1f" : "%7.2f", micros);
    }

    private static String format(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
