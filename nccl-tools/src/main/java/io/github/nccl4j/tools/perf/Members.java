package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.UniqueId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;

/** The ranks of one process, with their communicators and buffers. */
final class Members implements AutoCloseable {
    /** The largest element size in bytes; with -u, all buffers begin at that element. */
    private static final int LONGEST_ELEMENT = 8;

    private static final int LEAST_BYTES = 16;

    private final Settings settings;
    private final MemoryReport memory;
    private final List<Communicator> communicators = new CopyOnWriteArrayList<>();
    private final List<Member> members = new CopyOnWriteArrayList<>();

    /** Creates an object without ranks. The report is null without -M. */
    Members(Settings settings, MemoryReport memory) {
        this.settings = settings;
        this.memory = memory;
    }

    /** The parameters that the ranks of all processes share. */
    record World(UniqueId id, int size, CommunicatorConfig config, Duration patience) {}

    /**
     * Creates all ranks of this process and their buffers: with -p 1 each thread creates its own ranks, otherwise the calling
     * thread creates all. Collective.
     */
    void create(World world, int firstRank, List<Device> devices) throws Exception {
        int together = settings.parallelInit == 0 ? devices.size() : settings.gpus;
        List<Callable<Void>> parts = new ArrayList<>();
        for (int first = 0; first < devices.size(); first += together) {
            int at = first;
            parts.add(() -> {
                createTogether(world, firstRank + at, devices.subList(at, at + together));
                return null;
            });
        }
        Threads.run(parts, this::abort);
    }

    private void createTogether(World world, int firstRank, List<Device> devices) {
        MemoryReport.Meter meter = memory == null ? null : memory.meter(devices);
        List<Communicator> made = Communicator.builder()
                .config(world.config)
                .deadline(world.patience)
                .createAll(world.id, firstRank, world.size, devices);
        communicators.addAll(made);
        if (meter != null) {
            meter.done(MemoryReport.Step.COMMUNICATORS);
        }
        long bytes = Math.max(LEAST_BYTES, settings.maxBytes + (long) LONGEST_ELEMENT * settings.unalign);
        List<Member> own = new ArrayList<>();
        for (Communicator communicator : made) {
            Member member = new Member(communicator, bytes, settings.defaultStream != 0);
            members.add(member);
            own.add(member);
        }
        if (settings.register == 1) {
            own.forEach(Member::register);
        } else if (settings.register == 2) {
            Group.run(() -> own.forEach(Member::registerWindows));
        }
        if (meter != null) {
            meter.done(MemoryReport.Step.BUFFERS);
        }
    }

    /** {@return the ranks of this process, in order} */
    List<Member> all() {
        return members.stream().sorted(Comparator.comparing(Member::rank)).toList();
    }

    /** Aborts all communicators, so that no other process waits for this one. */
    void abort() {
        communicators.forEach(Communicator::abort);
    }

    @Override
    public void close() {
        communicators.forEach(Communicator::close);
        members.forEach(Member::close);
    }
}
