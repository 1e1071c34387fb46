package io.github.nccl4j.tools.perf;

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
 * A barrier for the threads of one or several processes of a machine, in shared memory, which also exchanges numbers.
 *
 * <p>All threads leave the barrier within about a microsecond, as the processes of nccl-tests leave MPI's barrier. Otherwise the
 * first thread would measure its wait for the others as time of the collective. Waiting threads spin instead of sleeping,
 * because a processor is slow after a sleep.
 *
 * <p>Thread-safe.
 */
final class SharedBarrier {
    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final int ARRIVED = 0;

    /** In another cache line than {@link #ARRIVED}. */
    private static final int ROUND = 128;

    private static final int MARK = 256;
    private static final int MARK_BYTES = 36;
    private static final int NUMBERS = 512;

    /** Each number has its own cache line. */
    private static final int NUMBER_BYTES = 128;

    private static final int SPINS = 10_000;
    private static final long TIMEOUT_NANOS = TimeUnit.MINUTES.toNanos(10);

    private final ByteBuffer memory;
    private final int parties;
    private volatile boolean broken;

    private SharedBarrier(ByteBuffer memory, int parties) {
        this.memory = memory;
        this.parties = parties;
    }

    /** Creates a barrier for the threads of this process. */
    static SharedBarrier ofThreads(int threads) {
        return new SharedBarrier(ByteBuffer.allocateDirect(bytes(threads)).order(ByteOrder.nativeOrder()), threads);
    }

    private static int bytes(int parties) {
        return NUMBERS + NUMBER_BYTES * parties;
    }

    /**
     * Creates a barrier for the threads of several processes. Collective.
     *
     * @param ranks the processes
     * @param threadsPerProcess the number of threads of each process
     * @param patience the time to wait for the other processes
     * @return the barrier; null on all processes if they run on several machines
     */
    static SharedBarrier of(Rendezvous ranks, int threadsPerProcess, Duration patience) throws IOException {
        Path own = null;
        int parties = ranks.size() * threadsPerProcess;
        try {
            if (ranks.rank() == 0) {
                own = create(bytes(parties));
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
                    path.lines().toList().get(1),
                    bytes(parties));
            List<byte[]> all = ranks.gather("barrier opened", new byte[] {(byte) (memory == null ? 0 : 1)}, patience);
            return all.stream().allMatch(one -> one[0] == 1) ? new SharedBarrier(memory, parties) : null;
        } finally {
            if (own != null) {
                Files.delete(own);
            }
        }
    }

    private static Path create(int bytes) throws IOException {
        Path shared = Path.of("/dev/shm");
        if (Files.isWritable(shared)) {
            try {
                return create(shared, bytes);
            } catch (IOException full) {
                // A file elsewhere is as good: it stays in the memory of the system while the ranks map it.
            }
        }
        return create(Path.of(System.getProperty("java.io.tmpdir")), bytes);
    }

    /** Creates a file in a folder, or leaves none and names it. */
    static Path create(Path folder, int bytes) throws IOException {
        Path file = Files.createTempFile(folder, "nccl4j-perf", null);
        ByteBuffer content = ByteBuffer.allocate(bytes);
        content.put(MARK, UUID.randomUUID().toString().getBytes(StandardCharsets.US_ASCII));
        try {
            Files.write(file, content.array());
        } catch (IOException e) {
            Files.delete(file);
            throw new IOException(file + " can't be written: " + e.getMessage(), e);
        }
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

    /** Maps the memory; returns null if the file is on another machine. */
    private static ByteBuffer open(Path file, String mark, int bytes) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            if (channel.size() != bytes) {
                return null;
            }
            ByteBuffer memory =
                    channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes).order(ByteOrder.nativeOrder());
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
            } else if (!broken && System.nanoTime() - start < TIMEOUT_NANOS) {
                Thread.yield();
            } else {
                throw new PerfException("another thread or process has failed or hangs");
            }
        }
    }

    /**
     * Waits for all threads and returns their numbers.
     *
     * @param party the index of the calling thread, counted from 0 by process and then by thread
     */
    double[] gather(int party, double number) {
        memory.putDouble(NUMBERS + NUMBER_BYTES * party, number);
        await();
        double[] numbers = new double[parties];
        for (int i = 0; i < parties; i++) {
            numbers[i] = memory.getDouble(NUMBERS + NUMBER_BYTES * i);
        }
        // Wait until all threads have read the numbers.
        await();
        return numbers;
    }

    /** Makes all waiting threads of this process fail. */
    void abort() {
        broken = true;
    }
}
