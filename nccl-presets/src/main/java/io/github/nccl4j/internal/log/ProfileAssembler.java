package io.github.nccl4j.internal.log;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Makes operations of the records of the profiler plugin. The layout of a record is that of {@code nccl4j_profiler.h}. The
 * number of operations and communicators that are kept has a limit. Not thread-safe.
 *
 * <p>The kernel of an operation has several channels, each with a record when it starts and one when it stops. Some releases of
 * NCCL report fewer channels than they announce; then the operation ends after a pause.
 */
public final class ProfileAssembler {
    private static final int RECORD_SIZE = 120;
    private static final int KIND = 0;
    private static final int COMMUNICATOR = 4;
    private static final int ID = 8;
    private static final int TIME = 16;
    private static final int NUMBER = 24;
    private static final int COUNT = 32;
    private static final int TAG = 40;
    private static final int PEER = 48;
    private static final int CHANNELS = 52;
    private static final int WARPS = 53;
    private static final int TYPE = 54;
    private static final int UNTIMED = 55;
    private static final int TEXT = 56;
    private static final int TEXT_SIZE = 16;

    private static final int COMMUNICATOR_BEGINS = 1;
    private static final int COMMUNICATOR_ENDS = 2;
    private static final int OPERATION = 3;
    private static final int KERNEL_STARTS = 4;
    private static final int KERNEL_STOPS = 5;

    private static final int MAX_PENDING = 1 << 14;
    private static final int MAX_COMMUNICATORS = 1 << 12;
    /** Nanoseconds after the last record of a kernel, when the other channels count as not reported. */
    private static final long PAUSE = 200_000_000;
    /** Nanoseconds after the launch, when the kernel of an operation counts as not reported if later operations are done. */
    private static final long NO_KERNEL = 2_000_000_000;

    private static final Member UNKNOWN = new Member(0, "", -1, 0, 0, 0, 0);

    private final Consumer<Operation> sink;
    private final Map<Long, Operation> pending = new LinkedHashMap<>();
    private final Map<Integer, Communicator> communicators = new LinkedHashMap<>();
    private final Map<TextKey, String> texts = new HashMap<>();
    private long incomplete;

    /** A text of a record as two words, so that equal texts are one object. */
    private record TextKey(long first, long second) {}

    /**
     * A communicator.
     *
     * @param id NCCL's id, the same on all ranks
     * @param name the name from its configuration, or empty
     * @param rank the rank; -1 if the record of the communicator was lost
     * @param size the number of ranks
     * @param nodes the number of nodes
     * @param version the version of the plugin interface
     * @param created the time of the record on the clock of {@link System#nanoTime}
     */
    public record Member(long id, String name, int rank, int size, int nodes, int version, long created) {}

    /** A communicator while it exists. */
    private static final class Communicator {
        private final Member member;
        private final ClockOffset offset = new ClockOffset();
        private long messages;
        private long lastDone;

        Communicator(Member member) {
            this.member = member;
        }
    }

    /**
     * Difference between the clocks of CPU and GPU: the smallest delay between a time of the GPU and its record, of the last
     * 10 to 20 seconds. It is too large by the time that NCCL needs to see the end of a kernel, some microseconds.
     */
    private static final class ClockOffset {
        private static final long PERIOD = 10_000_000_000L;
        private long current = Long.MAX_VALUE;
        private long previous = Long.MAX_VALUE;
        private long since;

        void observe(long cpu, long gpu) {
            if (current == Long.MAX_VALUE && previous == Long.MAX_VALUE) {
                since = cpu;
            } else if (cpu - since > PERIOD) {
                previous = current;
                current = Long.MAX_VALUE;
                since = cpu;
            }
            current = Math.min(current, cpu - gpu);
        }

        long get() {
            return Math.min(current, previous);
        }
    }

    /** An operation. Times are in nanoseconds: of the launch on the clock of {@link System#nanoTime}, of the kernel on the GPU's. */
    public static final class Operation {
        /** Of its communicator. */
        public Member member;
        /** True for a send or a receive. */
        public boolean message;
        /** Name without "nccl", as NCCL reports it. */
        public String function;

        public String datatype;
        public String algorithm;
        public String protocol;
        /** NCCL's number of the collective among those of its function, from 0; of a message that since the recording began. */
        public long number;

        public long count;
        public long tag;
        public int peer;
        public int channels;
        public int warps;
        public long launched;
        /** 0 if not reported. */
        public long kernelStart;

        public long kernelEnd;
        /** Start of the kernel on the clock of the launch; too late by some microseconds. */
        public long started;

        private int communicator;
        private long id;
        private int starts;
        private int stops;
        private long lastRecord;
    }

    /**
     * Creates an assembler.
     *
     * @param sink gets each operation when it is complete
     */
    public ProfileAssembler(Consumer<Operation> sink) {
        this.sink = sink;
    }

    /** Number of operations whose kernels were not reported, or not all of their channels. */
    public long incomplete() {
        return incomplete;
    }

    /** Number of operations whose kernels have not ended. */
    public int pending() {
        return pending.size();
    }

    /** Adds records. */
    public void add(ByteBuffer records, int number) {
        for (int i = 0; i < number; i++) {
            addOne(records, i * RECORD_SIZE);
        }
    }

    private void addOne(ByteBuffer records, int at) {
        switch (records.getInt(at + KIND)) {
            case COMMUNICATOR_BEGINS -> begin(records, at);
            case COMMUNICATOR_ENDS -> end(records.getInt(at + COMMUNICATOR));
            case OPERATION -> launched(records, at);
            case KERNEL_STARTS -> started(records, at);
            case KERNEL_STOPS -> stopped(records, at);
            default -> throw new IllegalStateException("a record of kind " + records.getInt(at + KIND));
        }
    }

    private void begin(ByteBuffer records, int at) {
        Member member = new Member(
                records.getLong(at + ID),
                text(records, at + TEXT, 4 * TEXT_SIZE),
                records.getInt(at + PEER),
                (int) records.getLong(at + COUNT),
                (int) records.getLong(at + TAG),
                records.get(at + CHANNELS),
                records.getLong(at + TIME));
        put(records.getInt(at + COMMUNICATOR), member);
    }

    private Communicator put(int number, Member member) {
        if (communicators.size() == MAX_COMMUNICATORS) {
            end(communicators.keySet().iterator().next());
        }
        Communicator communicator = new Communicator(member);
        communicators.put(number, communicator);
        return communicator;
    }

    private void end(int number) {
        List<Operation> left = new ArrayList<>();
        pending.values().removeIf(operation -> operation.communicator == number && left.add(operation));
        left.forEach(this::giveUp);
        communicators.remove(number);
    }

    private void launched(ByteBuffer records, int at) {
        Operation operation = new Operation();
        operation.communicator = records.getInt(at + COMMUNICATOR);
        operation.id = records.getLong(at + ID);
        Communicator communicator = communicators.get(operation.communicator);
        if (communicator == null) {
            communicator = put(operation.communicator, UNKNOWN);
        }
        operation.member = communicator.member;
        operation.message = records.get(at + TYPE) == 2;
        operation.number = operation.message ? communicator.messages++ : records.getLong(at + NUMBER);
        operation.launched = records.getLong(at + TIME);
        operation.count = records.getLong(at + COUNT);
        operation.tag = records.getLong(at + TAG);
        operation.peer = records.getInt(at + PEER);
        operation.channels = records.get(at + CHANNELS) & 0xff;
        operation.warps = records.get(at + WARPS) & 0xff;
        operation.function = shared(records, at + TEXT);
        operation.datatype = shared(records, at + TEXT + TEXT_SIZE);
        operation.algorithm = shared(records, at + TEXT + 2 * TEXT_SIZE);
        operation.protocol = shared(records, at + TEXT + 3 * TEXT_SIZE);
        if (operation.channels == 0 || records.get(at + UNTIMED) != 0) {
            sink.accept(operation);
            return;
        }
        if (pending.size() == MAX_PENDING) {
            Iterator<Operation> oldest = pending.values().iterator();
            Operation dropped = oldest.next();
            oldest.remove();
            giveUp(dropped);
        }
        pending.put(operation.id, operation);
    }

    private void started(ByteBuffer records, int at) {
        Operation operation = pending.get(records.getLong(at + ID));
        if (operation == null) {
            return;
        }
        long time = observe(operation, records, at);
        operation.kernelStart = operation.starts == 0 ? time : Math.min(operation.kernelStart, time);
        operation.starts++;
    }

    private void stopped(ByteBuffer records, int at) {
        Operation operation = pending.get(records.getLong(at + ID));
        if (operation == null || operation.starts == 0) {
            return;
        }
        long time = observe(operation, records, at);
        operation.kernelEnd = operation.stops == 0 ? time : Math.max(operation.kernelEnd, time);
        operation.stops++;
        if (operation.stops >= operation.channels && operation.stops == operation.starts) {
            pending.remove(operation.id);
            complete(operation);
        }
    }

    private long observe(Operation operation, ByteBuffer records, int at) {
        long time = records.getLong(at + NUMBER);
        operation.lastRecord = records.getLong(at + TIME);
        Communicator communicator = communicators.get(operation.communicator);
        if (communicator != null) {
            communicator.offset.observe(operation.lastRecord, time);
        }
        return time;
    }

    private void complete(Operation operation) {
        Communicator communicator = communicators.get(operation.communicator);
        if (communicator != null) {
            communicator.lastDone = Math.max(communicator.lastDone, operation.id);
            operation.started = operation.kernelStart + communicator.offset.get();
        }
        sink.accept(operation);
    }

    private void giveUp(Operation operation) {
        incomplete++;
        if (operation.starts == 0 || operation.starts != operation.stops) {
            operation.kernelStart = 0;
            operation.kernelEnd = 0;
            sink.accept(operation);
        } else {
            complete(operation);
        }
    }

    /** Ends operations of which no further record will come. */
    public void sweep(long now) {
        List<Operation> ended = new ArrayList<>();
        pending.values().removeIf(operation -> isOver(operation, now) && ended.add(operation));
        ended.forEach(this::giveUp);
    }

    private boolean isOver(Operation operation, long now) {
        if (operation.starts > 0 && operation.starts == operation.stops) {
            return now - operation.lastRecord > PAUSE;
        }
        // Without a record of its kernel, or of the end of a channel: such records may have been dropped.
        Communicator communicator = communicators.get(operation.communicator);
        long last = Math.max(operation.launched, operation.lastRecord);
        return communicator == null || communicator.lastDone > operation.id && now - last > NO_KERNEL;
    }

    private String shared(ByteBuffer records, int at) {
        TextKey key = new TextKey(records.getLong(at), records.getLong(at + 8));
        if (key.first() == 0) {
            return "";
        }
        // Few, but nothing here may grow without a limit.
        if (texts.size() > 1000) {
            texts.clear();
        }
        return texts.computeIfAbsent(key, one -> text(records, at, TEXT_SIZE));
    }

    private static String text(ByteBuffer records, int at, int size) {
        byte[] bytes = new byte[size];
        records.get(at, bytes);
        int length = 0;
        while (length < size && bytes[length] != 0) {
            length++;
        }
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }
}
