package io.github.nccl4j.tools.support;

import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;

/**
 * Test data: small integers that depend on the index and a seed, with a prime period. Immutable.
 *
 * <p>Sums over ranks are exact in float, in any order of addition.
 */
public final class Pattern {

    /** A prime, so that data shifted by a power of two differs from the pattern. */
    private static final int PERIOD = 1009;

    /** Elements per copy between Java and the device. */
    private static final int CHUNK = 1 << 18;

    private static final int VALUES = 127;
    private static final int STEP = 31;

    private final float[] table;

    private Pattern(float[] table) {
        this.table = table;
    }

    /**
     * Creates the data of one rank.
     *
     * @param seed a seed that differs between ranks and tests
     * @return the pattern
     */
    public static Pattern of(long seed) {
        float[] table = new float[PERIOD];
        for (int i = 0; i < PERIOD; i++) {
            long mixed = (i + Math.floorMod(seed, PERIOD)) * STEP + i * (long) i;
            table[i] = mixed % VALUES + 1;
        }
        return new Pattern(table);
    }

    /**
     * Returns the element-wise sum.
     *
     * @param other the other summand
     * @return the pattern of the sums
     */
    public Pattern plus(Pattern other) {
        float[] sum = table.clone();
        for (int i = 0; i < PERIOD; i++) {
            sum[i] += other.table[i];
        }
        return new Pattern(sum);
    }

    /**
     * Returns an element.
     *
     * @param index its index, at least 0
     * @return its value
     */
    public float at(long index) {
        return table[(int) (index % PERIOD)];
    }

    /**
     * Fills a buffer with the pattern, starting at its first element.
     *
     * @param buffer the buffer to fill
     */
    public void write(DeviceBuffer<Float32> buffer) {
        float[] chunk = new float[(int) Math.min(CHUNK, buffer.length())];
        for (long at = 0; at < buffer.length(); at += chunk.length) {
            int count = (int) Math.min(chunk.length, buffer.length() - at);
            fill(chunk, count, at);
            buffer.copyFrom(chunk, 0, at, count);
        }
    }

    /**
     * Compares a buffer with the pattern, element by element.
     *
     * @param buffer the buffer to compare
     * @return the wrong elements
     */
    public Mismatch compare(DeviceBuffer<Float32> buffer) {
        float[] chunk = new float[(int) Math.min(CHUNK, buffer.length())];
        Mismatch result = Mismatch.NONE;
        for (long at = 0; at < buffer.length(); at += chunk.length) {
            int count = (int) Math.min(chunk.length, buffer.length() - at);
            buffer.copyTo(chunk, 0, at, count);
            result = result.and(compare(chunk, count, at, at));
        }
        return result;
    }

    void fill(float[] to, int count, long from) {
        int phase = (int) (from % PERIOD);
        for (int i = 0; i < count; i++) {
            to[i] = table[phase];
            phase = phase + 1 == PERIOD ? 0 : phase + 1;
        }
    }

    Mismatch compare(float[] got, int count, long from, long offset) {
        int phase = (int) (from % PERIOD);
        long wrong = 0;
        int first = -1;
        for (int i = 0; i < count; i++) {
            if (got[i] != table[phase]) {
                first = wrong == 0 ? i : first;
                wrong++;
            }
            phase = phase + 1 == PERIOD ? 0 : phase + 1;
        }
        return wrong == 0 ? Mismatch.NONE : new Mismatch(wrong, offset + first, at(from + first), got[first]);
    }
}
