package io.github.nccl4j.tests.endurance;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tests.Held;
import io.github.nccl4j.tools.launch.Signals;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;

/**
 * A process of {@link SoakCommand}. A line of its input is a round, {@code seed id rank size victim at}, which it answers with
 * {@code done operations elements children} when all elements were right, or with {@code WRONG ...}. The rank that is the
 * victim kills its process at its operation {@code at}; the others go on without it. A line {@code held} asks what it holds.
 */
final class SoakRank {
    static final String HELD = "held";

    private static final int USUAL = 40_000;
    /** More than a connection's memory holds. */
    private static final int MOST = 300_000;

    private static final int OPERATIONS = 60;

    private final CudaStream[] streams;
    private final DeviceBuffer<Int64> send;
    private final DeviceBuffer<Int64> recv;
    /** Bytes that it forgets in each round. */
    private final int lost;

    private final CudaEvent event = CudaEvent.create(Device.host());
    private long operations;
    private long elements;
    private long children;

    private SoakRank(int size, int lost) {
        this.lost = lost;
        streams = new CudaStream[] {
            CudaStream.nonBlocking(Device.host()),
            CudaStream.nonBlocking(Device.host()),
            CudaStream.defaultOf(Device.host())
        };
        send = Device.host().allocate(ElementType.INT64, (long) MOST * size);
        recv = Device.host().allocate(ElementType.INT64, (long) MOST * size);
        // Pages are there once they are written to; none is to come later.
        send.fill(-1L);
        recv.fill(-1L);
    }

    public static void main(String... args) throws Exception {
        SoakRank self = new SoakRank(Integer.parseInt(args[0]), Integer.parseInt(args[1]));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(line.equals(HELD) ? Held.now().toLine() : self.answer(line.split(" ")));
        }
    }

    private String answer(String... round) {
        try {
            return round(
                    Long.parseLong(round[0]),
                    UniqueId.of(HexFormat.of().parseHex(round[1])),
                    Integer.parseInt(round[2]),
                    Integer.parseInt(round[3]),
                    Integer.parseInt(round[4]),
                    Integer.parseInt(round[5]));
        } catch (AssertionError | RuntimeException wrong) {
            wrong.printStackTrace();
            return "WRONG " + wrong.toString().replace('\n', ' ');
        }
    }

    private String round(long seed, UniqueId id, int rank, int size, int victim, int at) {
        operations = 0;
        elements = 0;
        children = 0;
        Communicator all = Communicator.create(id, rank, size);
        NcclResultException lost = null;
        Random plan = new Random(seed);
        try {
            for (int i = 0; i < OPERATIONS; i++) {
                if (rank == victim && i == at) {
                    killMyself();
                }
                operation(all, plan);
            }
        } catch (NcclResultException failure) {
            lost = failure;
        }
        if ((lost != null) != (victim >= 0)) {
            throw new AssertionError("rank " + victim + " was to die", lost);
        }
        if (lost == null) {
            all.close();
        } else {
            if (!lost.lastError().contains("rank " + victim)) {
                throw new AssertionError("another rank was named", lost);
            }
            try (Communicator rest = all.shrink(List.of(victim), ShrinkFlag.ABORT)) {
                all.abort();
                children++;
                Random again = new Random(~seed);
                for (int i = 0; i < OPERATIONS / 4; i++) {
                    operation(rest, again);
                }
            }
        }
        if (this.lost > 0) {
            Device.host().allocate(ElementType.INT8, this.lost).fill((byte) 1);
        }
        return "done " + operations + " " + elements + " " + children;
    }

    private static void killMyself() {
        try {
            Signals.send("KILL", ProcessHandle.current().pid());
            Thread.sleep(10_000);
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
        throw new IllegalStateException("still alive");
    }

    /** The same on all ranks, which share the plan. */
    private void operation(Communicator communicator, Random plan) {
        int kind = plan.nextInt(10);
        int most = plan.nextInt(4) > 0 ? 600 : plan.nextInt(8) > 0 ? USUAL : MOST;
        int count = 1 + plan.nextInt(most);
        long salt = plan.nextInt(1000);
        CudaStream stream = streams[plan.nextInt(streams.length)];
        int size = communicator.size();
        int rank = communicator.rank();
        int root = plan.nextInt(size);
        fill(send, rank, salt, (long) count * size);
        operations++;
        try (DeviceBuffer<Int64> mine = send.slice(0, count);
                DeviceBuffer<Int64> everybodys = recv.slice(0, (long) count * size);
                DeviceBuffer<Int64> one = recv.slice(0, count)) {
            switch (kind) {
                case 0, 1, 2 -> {
                    communicator.allReduce(mine, one, ReduceOp.SUM, stream);
                    finish(communicator, stream);
                    check(one, 0, count, i -> sum(size, salt, i));
                }
                case 3 -> {
                    communicator.broadcast(mine, one, root, stream);
                    finish(communicator, stream);
                    check(one, 0, count, i -> value(root, salt, i));
                }
                case 4 -> {
                    communicator.allGather(mine, everybodys, stream);
                    finish(communicator, stream);
                    for (int from = 0; from < size; from++) {
                        int sender = from;
                        check(everybodys, (long) from * count, count, i -> value(sender, salt, i));
                    }
                }
                case 5 -> {
                    try (DeviceBuffer<Int64> whole = send.slice(0, (long) count * size)) {
                        communicator.reduceScatter(whole, one, ReduceOp.SUM, stream);
                        finish(communicator, stream);
                        check(one, 0, count, i -> sum(size, salt, (long) rank * count + i));
                    }
                }
                case 6 -> {
                    int next = (rank + 1) % size;
                    int previous = (rank + size - 1) % size;
                    try (Group group = Group.open()) {
                        communicator.send(mine, next, stream);
                        communicator.recv(one, previous, stream);
                        group.launch();
                    }
                    finish(communicator, stream);
                    check(one, 0, count, i -> value(previous, salt, i));
                }
                case 7 -> twoStreams(communicator, mine, one, count, salt);
                case 8 -> {
                    // Behind each other without looking, as a training step does.
                    for (int i = 0; i < 5; i++) {
                        communicator.allReduce(mine, one, ReduceOp.MAX, stream);
                    }
                    finish(communicator, stream);
                    check(one, 0, count, i -> value(size - 1, salt, i));
                }
                default -> split(communicator, mine, one, count, salt, plan.nextInt(2) + 1, stream);
            }
        }
    }

    private void twoStreams(
            Communicator communicator, DeviceBuffer<Int64> mine, DeviceBuffer<Int64> one, int count, long salt) {
        communicator.allReduce(mine, one, ReduceOp.SUM, streams[0]);
        event.record(streams[0]);
        streams[1].waitFor(event);
        communicator.allReduce(one, ReduceOp.SUM, streams[1]);
        finish(communicator, streams[1]);
        int size = communicator.size();
        check(one, 0, count, i -> size * sum(size, salt, i));
    }

    private void split(
            Communicator communicator,
            DeviceBuffer<Int64> mine,
            DeviceBuffer<Int64> one,
            int count,
            long salt,
            int colors,
            CudaStream stream) {
        try (Communicator part = communicator.split(communicator.rank() % colors, 0)) {
            children++;
            part.allReduce(mine, one, ReduceOp.SUM, stream);
            finish(part, stream);
        }
        int first = communicator.rank() % colors;
        check(one, 0, count, i -> {
            long sum = 0;
            for (int member = first; member < communicator.size(); member += colors) {
                sum += value(member, salt, i);
            }
            return sum;
        });
    }

    private static void finish(Communicator communicator, CudaStream stream) {
        communicator.work(stream).await();
    }

    /** What an element must be. */
    private interface Expected {
        long at(long index);
    }

    private static long value(int rank, long salt, long index) {
        return (rank + 1) * 1_000_000L + salt * 31 + index % 97;
    }

    private static long sum(int size, long salt, long index) {
        return size * (size + 1L) / 2 * 1_000_000L + size * (salt * 31 + index % 97);
    }

    private static void fill(DeviceBuffer<Int64> buffer, int rank, long salt, long count) {
        long[] values = new long[Math.toIntExact(count)];
        for (int i = 0; i < values.length; i++) {
            values[i] = value(rank, salt, i);
        }
        try (DeviceBuffer<Int64> part = buffer.slice(0, count)) {
            part.copyFrom(values);
        }
    }

    private void check(DeviceBuffer<Int64> buffer, long start, int count, Expected expected) {
        long[] values = new long[count];
        try (DeviceBuffer<Int64> part = buffer.slice(start, count)) {
            part.copyTo(values);
        }
        for (int i = 0; i < count; i++) {
            if (values[i] != expected.at(i)) {
                throw new AssertionError(
                        "element " + i + " of " + count + ": expected " + expected.at(i) + ", was " + values[i]);
            }
        }
        elements += count;
    }
}
