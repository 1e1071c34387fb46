package io.github.nccl4j.samples.support;

import java.nio.FloatBuffer;
import org.bytedeco.javacpp.FloatPointer;

/**
 * Where a rank's buffers lie: the memory of its GPU, or host memory when the host engine runs.
 *
 * <p>Memory is addressed by plain addresses. Everything that was allocated is freed by {@link #close()}. Not thread-safe: a rank
 * uses its device in one thread.
 */
public abstract class Device implements AutoCloseable {

    /** Elements that travel between Java and the device at a time. */
    private static final int CHUNK = 1 << 18;

    private final FloatPointer staging = new FloatPointer(CHUNK);
    private final FloatBuffer window = staging.asBuffer();
    private final float[] chunk = new float[CHUNK];

    /** For the two kinds of devices. */
    Device() {}

    /**
     * Allocates memory.
     *
     * @param bytes its size; 0 is taken as 1
     * @return its address
     */
    public abstract long allocate(long bytes);

    /**
     * Sets every byte.
     *
     * @param address where to begin
     * @param value the value, 0 to 255
     * @param bytes how many
     */
    public abstract void set(long address, int value, long bytes);

    /** {@return the stream to launch on, 0 if there is none} */
    public abstract long stream();

    /** Waits until everything that was launched on the stream is done. */
    public abstract void synchronize();

    /** {@return what it is, for people} */
    public abstract String describe();

    abstract void toDevice(long address, FloatPointer from, long bytes);

    abstract void toHost(FloatPointer to, long address, long bytes);

    /**
     * Writes a pattern.
     *
     * @param address the address of element 0
     * @param pattern what to write
     * @param from the pattern's index for element 0
     * @param count how many elements
     */
    public void write(long address, Pattern pattern, long from, long count) {
        for (long at = 0; at < count; at += CHUNK) {
            int n = (int) Math.min(CHUNK, count - at);
            pattern.fill(chunk, n, from + at);
            window.clear();
            window.put(chunk, 0, n);
            toDevice(address + at * Float.BYTES, staging, (long) n * Float.BYTES);
        }
    }

    /**
     * Compares memory with a pattern, element by element.
     *
     * @param address the address of element 0
     * @param pattern what is expected
     * @param from the pattern's index for element 0
     * @param count how many elements
     * @return what is wrong
     */
    public Mismatch compare(long address, Pattern pattern, long from, long count) {
        Mismatch result = Mismatch.NONE;
        for (long at = 0; at < count; at += CHUNK) {
            int n = (int) Math.min(CHUNK, count - at);
            toHost(staging, address + at * Float.BYTES, (long) n * Float.BYTES);
            window.clear();
            window.get(chunk, 0, n);
            result = result.and(pattern.compare(chunk, n, from + at, at));
        }
        return result;
    }

    @Override
    public void close() {
        staging.close();
    }
}
