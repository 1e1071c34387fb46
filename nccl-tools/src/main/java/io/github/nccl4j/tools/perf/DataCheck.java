package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Uint8;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * Writes test data to device memory and compares every element with its expected value. The comparison copies the data to the
 * host and is not part of the measured time. Not thread-safe.
 */
final class DataCheck {
    private static final int STAGING_BYTES = 16 << 20;

    private final Elements elements;
    private final int size;
    private final ByteBuffer staging;

    DataCheck(Elements elements, int elementSize, ByteBuffer staging) {
        this.elements = elements;
        this.staging = staging;
        size = elementSize;
    }

    /** Allocates host memory for comparisons; each thread needs its own. */
    static ByteBuffer staging() {
        return ByteBuffer.allocateDirect(STAGING_BYTES).order(ByteOrder.nativeOrder());
    }

    /** Writes parts to a buffer; offset 0 is byte 0 of the buffer. */
    void write(DeviceBuffer<Uint8> buffer, List<Part> parts, int repetition) {
        for (Part part : parts) {
            if (part.length() > 0) {
                write(
                        buffer.slice(part.offset() * size, part.length() * size),
                        elements.period(part),
                        elements.phase(part, repetition) * size);
            }
        }
    }

    private static void write(DeviceBuffer<Uint8> target, byte[] period, int phase) {
        long total = target.length();
        long done = Math.min(total, period.length / 2);
        target.copyFrom(ByteBuffer.wrap(period, phase, (int) done));
        // Copy the rest on the device: the part that is already written is a whole number of periods.
        while (done < total) {
            long more = Math.min(done, total - done);
            target.slice(done, more).copyFrom(target.slice(0, more));
            done += more;
        }
    }

    /** Counts the wrong elements of a buffer. */
    long wrong(DeviceBuffer<Uint8> buffer, List<Part> parts, int repetition) {
        long wrong = 0;
        for (Part part : parts) {
            if (part.length() > 0) {
                DeviceBuffer<Uint8> bytes = buffer.slice(part.offset() * size, part.length() * size);
                ByteBuffer period = ByteBuffer.wrap(elements.period(part)).order(ByteOrder.nativeOrder());
                wrong += wrong(bytes, period, elements.phase(part, repetition) * size, elements.tolerance(part));
            }
        }
        return wrong;
    }

    private long wrong(DeviceBuffer<Uint8> buffer, ByteBuffer twice, int phase, int tolerance) {
        int period = twice.capacity() / 2;
        int chunk = STAGING_BYTES / period * period;
        long wrong = 0;
        for (long done = 0; done < buffer.length(); done += chunk) {
            int length = (int) Math.min(chunk, buffer.length() - done);
            staging.clear().limit(length);
            buffer.copyTo(staging, done);
            for (int from = 0; from < length; from += period) {
                int bytes = Math.min(period, length - from);
                wrong += wrong(staging.slice(from, bytes), twice.slice(phase, bytes), tolerance);
            }
        }
        return wrong;
    }

    private long wrong(ByteBuffer got, ByteBuffer expected, int tolerance) {
        int first = got.mismatch(expected);
        if (first < 0) {
            return 0;
        }
        got.order(ByteOrder.nativeOrder());
        expected.order(ByteOrder.nativeOrder());
        long wrong = 0;
        for (int at = first / size * size; at < got.capacity(); at += size) {
            long difference = bits(got, at) - bits(expected, at);
            if (difference > tolerance || difference < -tolerance) {
                wrong++;
            }
        }
        return wrong;
    }

    /** The bits of an element; those of adjacent floats of equal sign differ by 1. */
    private long bits(ByteBuffer buffer, int at) {
        return switch (size) {
            case Byte.BYTES -> buffer.get(at) & 0xff;
            case Short.BYTES -> buffer.getShort(at) & 0xffff;
            case Integer.BYTES -> buffer.getInt(at) & 0xffffffffL;
            default -> buffer.getLong(at);
        };
    }
}
