package io.github.nccl4j.samples.perf;

import io.github.nccl4j.launch.Rendezvous;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * A barrier for threads of several processes of one machine, in memory that they share. They leave it within a microsecond
 * or so of each other, as processes of nccl-tests leave MPI's barrier: whoever starts the clock before others come counts
 * the wait as time of the collective.
 */
final class SharedBarrier {
    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final int ARRIVED = 0;
    /** In another cache line. */
    private static final int ROUND = 128;

    private static final int MARK = 256;
    private static final int MARK_BYTES = 36;
    private static final int BYTES = 512;

    private static final int SPINS = 10_000;
    private static final long PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(10);

    private final ByteBuffer memory;
    private final int parties;
    private volatile boolean broken;

    private SharedBarrier(ByteBuffer memory, int parties) {
        this.memory = memory;
        this.parties = parties;
    }

    /**
     * Makes the barrier. Collective.
     *
     * @param ranks the processes
     * @param threadsPerProcess how many threads of each will meet
     * @return the barrier, or null at all processes if they are not all on one machine
     */
    static SharedBarrier of(Rendezvous ranks, int threadsPerProcess, Duration patience) throws IOException {
        Path own = null;
        try {
            if (ranks.rank() == 0) {
                own = create();
            }
            Path made = own;
            String path = new String(
                    ranks.broadcast(
                            "barrier",
                            0,
                            () -> (made + "\n" + markOf(made)).getBytes(StandardCharsets.UTF_8),
                            patience),
                    StandardCharsets.UTF_8);
            ByteBuffer memory = open(
                    Path.of(path.lines().findFirst().orElseThrow()),
                    path.lines().toList().get(1));
            List<byte[]> all = ranks.gather("barrier opened", new byte[] {(byte) (memory == null ? 0 : 1)}, patience);
            return all.stream().allMatch(one -> one[0] == 1)
                    ? new SharedBarrier(memory, ranks.size() * threadsPerProcess)
                    : null;
        } finally {
            if (own != null) {
                Files.delete(own);
            }
        }
    }

    private static Path create() throws IOException {
        Path memory = Path.of("/dev/shm");
        Path file = Files.isWritable(memory)
                ? Files.createTempFile(memory, "nccl4j-perf", null)
                : Files.createTempFile("nccl4j-perf", null);
        ByteBuffer content = ByteBuffer.allocate(BYTES);
        content.put(MARK, UUID.randomUUID().toString().getBytes(StandardCharsets.US_ASCII));
        Files.write(file, content.array());
        return file;
    }

    private static String markOf(Path file) {
        try {
            return mark(ByteBuffer.wrap(Files.readAllBytes(file)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String mark(ByteBuffer content) {
        byte[] mark = new byte[MARK_BYTES];
        content.get(MARK, mark);
        return new String(mark, StandardCharsets.US_ASCII);
    }

    /** The memory, or null if another machine has it. */
    private static ByteBuffer open(Path file, String mark) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            if (channel.size() != BYTES) {
                return null;
            }
            ByteBuffer memory =
                    channel.map(FileChannel.MapMode.READ_WRITE, 0, BYTES).order(ByteOrder.nativeOrder());
            return mark(memory).equals(mark) ? memory : null;
        } catch (IOException e) {
            return null;
        }
    }

    /** Waits for all threads. */
    void await() {
        int round = (int) INT.getVolatile(memory, ROUND);
        if ((int) INT.getAndAdd(memory, ARRIVED, 1) + 1 == parties) {
            INT.setVolatile(memory, ARRIVED, 0);
            INT.setVolatile(memory, ROUND, round + 1);
            return;
        }
        long start = System.nanoTime();
        for (long spins = 0; (int) INT.getVolatile(memory, ROUND) == round; spins++) {
            if (spins < SPINS) {
                Thread.onSpinWait();
            } else if (!broken && System.nanoTime() - start < PATIENCE_NANOS) {
                Thread.yield();
            } else {
                throw new PerfException("another thread or process has failed or hangs");
            }
        }
    }

    /** So that no thread of this process waits any more. */
    void abort() {
        broken = true;
    }
}
