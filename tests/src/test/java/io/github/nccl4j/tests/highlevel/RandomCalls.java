package io.github.nccl4j.tests.highlevel;

import static io.github.nccl4j.tests.highlevel.MisuseWorld.disguised;

import io.github.nccl4j.highlevel.CollectiveConfig;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaEvent;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.MemoryStatistic;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.StreamTimeoutException;
import io.github.nccl4j.highlevel.SuspendFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tools.support.Checks;
import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.regex.Pattern;

/** The calls of one thread: which, and with what, is random. */
final class RandomCalls {
    /** What may be thrown; null pointers only where there was a null. */
    private static final Set<Class<?>> DOCUMENTED = Set.of(
            IllegalArgumentException.class,
            IllegalStateException.class,
            IndexOutOfBoundsException.class,
            NullPointerException.class);

    /**
     * What the library says when another thread has changed the state during a call, an id is asked for twice, or a
     * communicator that does not block is split twice in a group.
     */
    private static final Pattern DISTURBED = Pattern.compile("has (revoked|suspended|finalized) this communicator"
            + "|was ended (by an abort or revoke|at rank)|has not been used by ncclCommGrow|is still being made"
            // That a stream stays open is the caller's concern.
            + "|is not a stream of the host engine|the stream was destroyed during the call");

    /** In a group the first only: the others don't go with operations of the parent that come after. */
    private static final CommunicatorConfig[] CONFIGS = {
        CommunicatorConfig.builder().build(),
        CommunicatorConfig.builder().blocking(false).build(),
        CommunicatorConfig.builder().maxCtas(4).commName("random").build(),
    };

    private final Random random;
    private final RandomThings things;
    private final Map<String, Checks.Code> calls = new LinkedHashMap<>();
    private final List<String> names;
    private final Deque<Group> open = new ArrayDeque<>();
    private Communicator[] pair;
    private boolean usedNull;

    /** A call that is ready to be made. */
    record Call(String name, Checks.Code code) {}

    RandomCalls(long seed, RandomThings things) {
        random = new Random(seed);
        this.things = things;
        operations();
        addresses();
        groups();
        lives();
        memory();
        names = new ArrayList<>(calls.keySet());
    }

    Call next() {
        usedNull = false;
        // No group stays open for long: it keeps communicators from all others.
        String name = !open.isEmpty() && oneIn(8) ? "end a group" : names.get(random.nextInt(names.size()));
        return new Call(name, calls.get(name));
    }

    /** Why an exception should not be, else null. */
    String problem(String call, Throwable thrown) {
        if (thrown instanceof CompletionException && call.equals("future")) {
            return problem("work", thrown.getCause());
        }
        Class<?> type = thrown.getClass();
        if (type == NcclTimeoutException.class && call.equals("grow")) {
            // Nobody joins.
            return null;
        }
        if (type == NcclTimeoutException.class && call.equals("work")
                || type == StreamTimeoutException.class && call.equals("synchronize")) {
            // The other rank has not come yet, or never comes.
            return null;
        }
        // Without a text when the communicator, which has it, was closed meanwhile.
        if (thrown instanceof NcclResultException found
                && (found.lastError().isEmpty()
                        || DISTURBED.matcher(found.lastError()).find())) {
            return null;
        }
        if (!DOCUMENTED.contains(type)) {
            return type.getName();
        }
        if (type == NullPointerException.class && !usedNull) {
            return "a null that the caller did not give";
        }
        if (thrown.getStackTrace().length == 0) {
            // Compiled code that has thrown it often saves itself the words.
            return null;
        }
        return thrown.getMessage() == null || thrown.getMessage().isBlank() ? "no message" : null;
    }

    /** Leaves nothing open. */
    void end() {
        while (!open.isEmpty()) {
            open.pop().close();
        }
        if (pair != null) {
            pair[0].abort();
            pair[1].abort();
        }
    }

    /* Random arguments. */

    private boolean oneIn(int n) {
        return random.nextInt(n) == 0;
    }

    private <T> T orNull(T value) {
        if (oneIn(40)) {
            usedNull = true;
            return null;
        }
        return value;
    }

    private <T> T pick(AtomicReferenceArray<T> places) {
        return places.get(random.nextInt(places.length()));
    }

    @SafeVarargs
    private <T> T pick(T... values) {
        return values[random.nextInt(values.length)];
    }

    private Communicator communicator() {
        return pick(things.communicators);
    }

    private CudaStream stream() {
        return orNull(pick(things.streams));
    }

    private int rank() {
        return oneIn(4) ? pick(-1, 1, 7, Integer.MIN_VALUE, Integer.MAX_VALUE) : 0;
    }

    private DeviceBuffer<Float32> buffer() {
        return orNull(disguised(someBuffer()));
    }

    private DeviceBuffer<?> someBuffer() {
        DeviceBuffer<?> buffer = pick(things.buffers);
        if (oneIn(4) && buffer.isOpen() && buffer.length() > 1) {
            return buffer.slice(random.nextInt(2), 1 + random.nextInt((int) buffer.length() - 1));
        }
        return buffer;
    }

    /** Mostly one that goes with the other. */
    private DeviceBuffer<Float32> beside(DeviceBuffer<Float32> other) {
        if (other == null || oneIn(3)) {
            return buffer();
        }
        for (int i = 0; i < things.buffers.length(); i++) {
            DeviceBuffer<?> buffer = things.buffers.get(i);
            if (buffer != other
                    && buffer.type() == other.type()
                    && buffer.length() >= other.length()
                    && buffer.isOpen()) {
                return disguised(buffer.slice(0, other.length()));
            }
        }
        return other;
    }

    private ReduceOp op() {
        return orNull(oneIn(3) ? pick(things.operators) : ReduceOp.builtIn().get(random.nextInt(5)));
    }

    private long count() {
        return oneIn(4) ? pick(-1L, Long.MIN_VALUE, Long.MAX_VALUE, -1L << 40) : random.nextInt(64);
    }

    /** Never one that could be right and is not: nobody can find that out. */
    private long address() {
        return oneIn(4) ? pick(0L, 6L, 3L, -64L, Long.MIN_VALUE) : things.arena.address() + 1024L * random.nextInt(32);
    }

    private DataType type() {
        return orNull(pick(DataType.values()));
    }

    private CollectiveConfig config() {
        CollectiveConfig.Builder builder = CollectiveConfig.builder();
        if (oneIn(2)) {
            builder.preferAlgorithm("ring").profilerTag(random.nextInt(3));
        }
        if (oneIn(3)) {
            builder.cgaClusterSize(1 + random.nextInt(2));
        }
        if (oneIn(2)) {
            // Refused where it takes the time.
            builder.launchCompletionEvent(oneIn(10) ? pick(things.events) : pick(things.marks));
        }
        return orNull(builder.build());
    }

    private Duration duration() {
        return orNull(
                pick(Duration.ZERO, Duration.ofSeconds(-1), Duration.ofMillis(1), Duration.ofDays(1_000_000_000)));
    }

    /* Calls. */

    private void operations() {
        calls.put("allReduce", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().allReduce(send, beside(send), op(), stream());
        });
        calls.put("allReduce in place", () -> communicator().allReduce(buffer(), op(), stream()));
        calls.put("reduce", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().reduce(send, beside(send), op(), rank(), stream());
        });
        calls.put("broadcast", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().broadcast(send, beside(send), rank(), stream());
        });
        calls.put("allGather", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().allGather(send, beside(send), stream());
        });
        calls.put("reduceScatter", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().reduceScatter(send, beside(send), op(), stream());
        });
        calls.put("allToAll", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().allToAll(send, beside(send), stream());
        });
        calls.put("gather", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().gather(send, beside(send), rank(), stream());
        });
        calls.put("scatter", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().scatter(send, beside(send), rank(), stream());
        });
        calls.put("gather of a rank that is no root", () -> communicator().gather(buffer(), rank(), stream()));
        calls.put("scatter of a rank that is no root", () -> communicator().scatter(buffer(), rank(), stream()));
        calls.put("send", () -> communicator().send(buffer(), rank(), stream()));
        calls.put("recv", () -> communicator().recv(buffer(), rank(), stream()));
        calls.put("sendRecv", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().sendRecv(send, rank(), beside(send), rank(), stream());
        });
        calls.put("two ranks", this::twoRanks);
        calls.put("allReduce as configured", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().allReduce(send, beside(send), op(), stream(), config());
        });
        calls.put("reduce as configured", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().reduce(send, beside(send), op(), rank(), stream(), config());
        });
        calls.put("allGather as configured", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().allGather(send, beside(send), stream(), config());
        });
        calls.put("scatter as configured", () -> {
            DeviceBuffer<Float32> send = buffer();
            communicator().scatter(send, beside(send), rank(), stream(), config());
        });
        calls.put("another mark", () -> {
            things.replace(things.marks, random.nextInt(things.marks.length()), CudaEvent.create(things.device));
        });
    }

    private void addresses() {
        calls.put(
                "allReduce of addresses",
                () -> communicator().onAddresses().allReduce(address(), address(), count(), type(), op(), stream()));
        calls.put("reduce of addresses", () -> communicator()
                .onAddresses()
                .reduce(address(), address(), count(), type(), op(), rank(), stream()));
        calls.put(
                "broadcast of addresses",
                () -> communicator().onAddresses().broadcast(address(), address(), count(), type(), rank(), stream()));
        calls.put(
                "allGather of addresses",
                () -> communicator().onAddresses().allGather(address(), address(), count(), type(), stream()));
        calls.put("reduceScatter of addresses", () -> communicator()
                .onAddresses()
                .reduceScatter(address(), address(), count(), type(), op(), stream()));
        calls.put(
                "send of an address",
                () -> communicator().onAddresses().send(address(), count(), type(), rank(), stream()));
        calls.put(
                "recv at an address",
                () -> communicator().onAddresses().recv(address(), count(), type(), rank(), stream()));
    }

    /** Both ranks call the same, or neither is launched: a rank alone would wait for ever, as it should. */
    private void twoRanks() throws Exception {
        if (!open.isEmpty()) {
            return;
        }
        if (pair == null || pair[0].state() != Communicator.State.OPEN || pair[1].state() != Communicator.State.OPEN) {
            end();
            pair = Communicator.createAll(List.of(things.device, things.device)).toArray(Communicator[]::new);
        }
        if (oneIn(20)) {
            pair[random.nextInt(2)].abort();
        }
        ReduceOp op = oneIn(4) ? op() : ReduceOp.SUM;
        int root = random.nextInt(3);
        long length = 1 + random.nextInt(4);
        boolean transfers = random.nextBoolean();
        try (DeviceBuffer<Float32> one = things.device.allocate(ElementType.FLOAT32, length);
                DeviceBuffer<Float32> two = things.device.allocate(ElementType.FLOAT32, length);
                CudaStream stream = CudaStream.nonBlocking(things.device)) {
            Checks.Code early = oneIn(10) ? two::close : () -> {};
            early.run();
            Group.run(() -> {
                if (transfers) {
                    pair[0].send(one, 1, stream);
                    pair[1].recv(two, 0, stream);
                } else {
                    pair[0].reduce(one, op, root, stream);
                    pair[1].reduce(two, op, root, stream);
                }
            });
        }
    }

    private void groups() {
        calls.put("open a group", () -> {
            if (open.size() < 3) {
                Group group = Group.open();
                open.push(group);
                things.groups.set(random.nextInt(things.groups.length()), group);
            }
        });
        calls.put("end a group", () -> {
            if (!open.isEmpty()) {
                Group group = open.pop();
                try {
                    if (random.nextBoolean()) {
                        group.launch();
                    }
                } finally {
                    group.close();
                }
            }
        });
        calls.put("launch the outermost group", () -> {
            if (!open.isEmpty()) {
                open.peekLast().launch();
            }
        });
        calls.put("launch any group", () -> {
            Group group = pick(things.groups);
            if (group != null) {
                group.launch();
            }
        });
        calls.put("close any group", () -> {
            Group group = pick(things.groups);
            if (group != null) {
                group.close();
            }
        });
        calls.put("simulate any group", () -> {
            Group group = pick(things.groups);
            if (group != null) {
                group.simulate();
            }
        });
        calls.put(
                "run a group that throws",
                () -> Group.run(() -> {
                    communicator().send(buffer(), 0, stream());
                    throw new IllegalStateException("the program's own");
                }));
    }

    private void lives() {
        calls.put(
                "new communicator",
                () -> things.replace(
                        things.communicators,
                        random.nextInt(things.communicators.length()),
                        things.communicator(!oneIn(3))));
        calls.put("create", () -> {
            int rank = rank();
            int size = rank();
            // Only what is out of range: a rank that is right would wait for the others.
            if (size < 1 || rank < 0 || rank >= size) {
                Communicator.create(orNull(UniqueId.of(new byte[UniqueId.BYTES])), rank, size);
            }
        });
        calls.put("split", () -> {
            Communicator made = oneIn(3)
                    ? communicator().split(rank(), rank(), orNull(CONFIGS[open.isEmpty() ? random.nextInt(3) : 0]))
                    : communicator().split(rank(), rank());
            things.replace(things.communicators, random.nextInt(things.communicators.length()), made);
        });
        calls.put("splitNone", () -> communicator().splitNone());
        // Not in a group, whose launch would fail then.
        calls.put("shrink", () -> {
            if (open.isEmpty()) {
                communicator().shrink(orNull(List.of(rank())), orNull(ShrinkFlag.DEFAULT));
            }
        });
        calls.put("grow", () -> {
            if (open.isEmpty()) {
                communicator().grow(oneIn(20) ? 2 : 1);
            }
        });
        calls.put("growId", () -> communicator().growId());
        calls.put("suspend", () -> communicator().suspend(orNull(SuspendFlag.MEM)));
        calls.put("resume", () -> communicator().resume());
        calls.put("revoke", () -> communicator().revoke(orNull(RevokeFlag.DEFAULT)));
        calls.put("memory", () -> communicator().memory(orNull(pick(MemoryStatistic.values()))));
        calls.put("finish", () -> {
            if (oneIn(4)) {
                communicator().finish();
            }
        });
        calls.put("close", () -> {
            if (oneIn(4)) {
                communicator().close();
            }
        });
        calls.put("abort", () -> {
            if (oneIn(4)) {
                communicator().abort();
            }
        });
        calls.put("wrap", () -> Communicator.wrap(0, orNull(things.device)));
        calls.put("own", () -> {
            Communicator owner = communicator();
            Communicator child = oneIn(2) ? owner : owner.split(0, 0);
            boolean owned = false;
            try {
                owner.own(orNull(child));
                owned = true;
            } finally {
                if (!owned && child != owner) {
                    child.abort();
                }
            }
        });
        calls.put("ask", () -> {
            Communicator asked = communicator();
            asked.state();
            asked.toString();
            asked.rank();
            asked.asyncError();
            asked.lastError();
            asked.nativeHandle();
        });
        calls.put("streams of its own", () -> {
            Communicator asked = communicator();
            asked.stream();
            asked.letDefaultStreamWait();
            asked.waitForDefaultStream();
        });
        calls.put("work", () -> communicator().work(stream()).await(duration()));
        calls.put("future", () -> communicator().work(stream()).toFuture().join());
        calls.put(
                "preMulSum",
                () -> things.replace(
                        things.operators,
                        random.nextInt(things.operators.length()),
                        communicator()
                                .preMulSum(
                                        orNull(pick(ElementType.FLOAT32, ElementType.INT8, ElementType.UINT64)),
                                        pick(1.0, 0.5, 300.0, Double.NaN))));
        calls.put(
                "preMulSum of a buffer",
                () -> things.replace(
                        things.operators,
                        random.nextInt(things.operators.length()),
                        communicator().preMulSum(buffer())));
        calls.put("close an operator", () -> pick(things.operators).close());
    }

    private void memory() {
        calls.put(
                "new buffer",
                () -> things.replace(
                        things.buffers,
                        random.nextInt(things.buffers.length()),
                        things.device.allocate(
                                orNull(ElementType.values().get(random.nextInt(12))),
                                oneIn(6) ? pick(-1L, Long.MIN_VALUE) : 1L << random.nextInt(6))));
        calls.put("close a buffer", () -> pick(things.buffers).close());
        calls.put("slice", () -> pick(things.buffers).slice(count(), count()));
        calls.put("wrap memory", () -> DeviceBuffer.wrap(things.device, ElementType.INT8, address(), count()));
        calls.put("fill", () -> buffer().fill(random.nextInt(300)));
        calls.put("fill a fraction", () -> buffer().fill(0.5));
        calls.put("copy from an array", () -> buffer().copyFrom(orNull(new float[random.nextInt(20)])));
        calls.put("copy to a part", () -> buffer().copyTo(
                        orNull(FloatBuffer.allocate(random.nextInt(10))), random.nextInt(10) - 1));
        calls.put("copy of a buffer", () -> {
            DeviceBuffer<Float32> target = buffer();
            if (target != null) {
                target.copyFrom(beside(target));
            }
        });
        calls.put(
                "new stream",
                () -> things.replace(
                        things.streams,
                        random.nextInt(things.streams.length()),
                        CudaStream.nonBlocking(orNull(things.device))));
        calls.put("close a stream", () -> {
            if (oneIn(4)) {
                pick(things.streams).close();
            }
        });
        calls.put("synchronize", () -> pick(things.streams).synchronize(duration()));
        calls.put(
                "new event",
                () -> things.replace(
                        things.events,
                        random.nextInt(things.events.length()),
                        CudaEvent.timing(orNull(things.device))));
        calls.put("record", () -> pick(things.events).record(stream()));
        calls.put("wait for an event", () -> pick(things.streams).waitFor(orNull(pick(things.events))));
        calls.put("elapsed", () -> pick(things.events).elapsedSince(orNull(pick(things.events))));
        calls.put("close an event", () -> {
            if (oneIn(4)) {
                pick(things.events).close();
            }
        });
    }
}
