package io.github.nccl4j.tools.analyze;

import io.github.nccl4j.tools.support.Printable;
import java.io.IOException;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.concurrent.TimeUnit;

/** The largest values that a file may have: a damaged file, or one that a stranger has made, must not exhaust memory or time. */
final class Limits {
    static final long FILE_BYTES = 1L << 30;

    /** As many as a recorder can keep. */
    static final int OPERATIONS = 1 << 20;

    private static final int RANKS = 1 << 20;

    /** Programs that read the report's JSON have these numbers exactly. */
    private static final long NUMBERS = 1L << 53;

    private static final int CHARACTERS = 10_000;

    /** The year 9999, in seconds since 1970. */
    private static final long LAST_SECOND = 253_402_300_799L;

    private Limits() {}

    /** Checks a rank, or a number of ranks. */
    static int rank(String field, long value) throws IOException {
        return (int) check(field, value, RANKS);
    }

    /** Checks the number of an operation. */
    static long number(String field, long value) throws IOException {
        return check(field, value, NUMBERS);
    }

    private static long check(String field, long value, long limit) throws IOException {
        if (value < 0 || value > limit) {
            throw new IOException(field + " must be from 0 to " + limit + ": " + value);
        }
        return value;
    }

    /** Checks the number of operations of a file. */
    static void operations(int count) throws IOException {
        if (count > OPERATIONS) {
            throw new IOException("more than " + OPERATIONS + " operations");
        }
    }

    /** The beginning of a long text, without the characters that a terminal obeys. */
    static String text(String text) {
        return Printable.lines(text.substring(0, Math.min(text.length(), CHARACTERS)));
    }

    /** A time in microseconds since 1970; 0 for a text that is no time until the year 9999. */
    static long micros(String time) {
        try {
            Instant instant = Instant.parse(time);
            long seconds = instant.getEpochSecond();
            return seconds < 0 || seconds > LAST_SECOND
                    ? 0
                    : TimeUnit.SECONDS.toMicros(seconds) + TimeUnit.NANOSECONDS.toMicros(instant.getNano());
        } catch (DateTimeException noTime) {
            return 0;
        }
    }

    /** As {@link #micros(String)}, of nanoseconds since 1970. */
    static long micros(long nanoseconds) {
        return Math.max(0, TimeUnit.NANOSECONDS.toMicros(nanoseconds));
    }
}
