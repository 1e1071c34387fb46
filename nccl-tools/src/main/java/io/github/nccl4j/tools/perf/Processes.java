package io.github.nccl4j.tools.perf;

import io.github.nccl4j.launch.Rendezvous;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Exchange of data between the processes of a measurement through the store, for data too long for {@link SharedBarrier}. */
final class Processes {
    private final Rendezvous store;
    private final Duration patience;
    private int gathered;

    Processes(Rendezvous store, Duration patience) {
        this.store = store;
        this.patience = patience;
    }

    /**
     * Gathers bytes, of any length, from all processes on all processes. Collective; one thread of a process at a time.
     *
     * @param own the bytes of this process; their number is equal on all processes
     * @return the bytes by process
     */
    List<byte[]> gather(byte[] own) {
        if (store.size() == 1) {
            return List.of(own);
        }
        List<byte[]> all = new ArrayList<>();
        for (int i = 0; i < store.size(); i++) {
            all.add(new byte[own.length]);
        }
        for (int at = 0; at < own.length; at += Rendezvous.LONGEST_VALUE) {
            int end = Math.min(own.length, at + Rendezvous.LONGEST_VALUE);
            // A new key, because other processes may still be in the previous call.
            List<byte[]> parts = store.gather("perf " + gathered++, Arrays.copyOfRange(own, at, end), patience);
            for (int i = 0; i < parts.size(); i++) {
                System.arraycopy(parts.get(i), 0, all.get(i), at, end - at);
            }
        }
        return all;
    }

    /** As {@link #gather(byte[])}, with numbers. */
    List<double[]> gather(double[] own) {
        ByteBuffer bytes = ByteBuffer.allocate(own.length * Double.BYTES);
        bytes.asDoubleBuffer().put(own);
        List<double[]> all = new ArrayList<>();
        for (byte[] one : gather(bytes.array())) {
            double[] numbers = new double[own.length];
            ByteBuffer.wrap(one).asDoubleBuffer().get(numbers);
            all.add(numbers);
        }
        return all;
    }
}
