package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.binding.ProfilerQueue;
import io.github.nccl4j.internal.diagnostics.FlightRecord;
import io.github.nccl4j.internal.diagnostics.InspectorFile;
import io.github.nccl4j.internal.diagnostics.Jfr;
import io.github.nccl4j.internal.diagnostics.JfrEvents;
import io.github.nccl4j.internal.log.HelpText;
import io.github.nccl4j.internal.log.ProfileAssembler;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.internal.threads.ServiceLoop;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.library.SystemText;
import java.lang.System.Logger.Level;
import java.lang.ref.WeakReference;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * Records the operations of this process as NCCL executes them: when a kernel started and ended on the GPU, the algorithm,
 * the protocol and the channels that NCCL chose. It is a profiler plugin of NCCL, and is off by default.
 *
 * <pre>{@code
 * Profiler.start(); // before the first communicator
 * try (Profiler.Subscription printer = Profiler.subscribe(operation -> System.out.println(operation.function() + ": "
 *         + operation.kernelTime() + ", " + operation.busBandwidth() + " GB/s, " + operation.algorithm()))) {
 *     communicator.allReduce(buffer, ReduceOp.SUM, stream);
 *     communicator.work(stream).await();
 *     Profiler.flush();
 * }
 * }</pre>
 *
 * <p><b>Switching on.</b> NCCL looks for plugins when it creates its first communicator. {@link #prepare} must be called
 * before; {@link #start} and {@link #stop} then work at any time. The system property {@code nccl4j.profile} or the
 * environment variable {@code NCCL4J_PROFILE} does this without code: {@code ready} prepares, {@code on} also starts, and a
 * folder also writes files there.
 *
 * <p><b>Where operations go.</b> To {@linkplain #subscribe subscribers}; to JDK Flight Recorder as events {@code nccl4j.Kernel},
 * whose sequence number is that of the event {@code nccl4j.Operation}; and to {@linkplain #writeTo files} in the format of NCCL
 * Inspector, which {@code nccl4j analyze} shows beside its records. {@code nccl-micrometer} makes histograms.
 *
 * <p><b>Other plugins.</b> NCCL loads one plugin. If {@code NCCL_PROFILER_PLUGIN} names another plugin, or if the library
 * {@code libnccl-profiler.so} is found, this plugin passes every event on to that one.
 *
 * <p><b>Cost.</b> NCCL's threads write into a queue of 32768 records. They never wait: if the queue is full, records are dropped, and
 * {@link #statistics} counts them. A thread reads the queue every 10 ms. NCCL's own measurement of kernels makes small operations
 * slower, by a fifth to a third of the time of a call; with NCCL 2.31 and newer also while nothing is recorded, because NCCL would report
 * wrong times each time that recording starts again.
 *
 * <p><b>Memory.</b> Before 2.32, NCCL needs 34 MiB in {@code /dev/shm} for each rank of each communicator to report kernels, and
 * ends the process without them. If less is free, operations are recorded without the times of their kernels, and a warning
 * is logged.
 *
 * <p><b>Libraries.</b> NCCL 2.27 and newer, VCCL of the same age, and the host engine, whose operations have one channel and the
 * clock of the system. RCCL has another interface. Operations of the copy engine have no times of a kernel.
 *
 * <p>All methods may be called from any thread.
 *
 * @since 0.1
 */
@Incubating
public final class Profiler {
    private static final String PROPERTY = "nccl4j.profile";
    private static final String PLUGIN = "NCCL_PROFILER_PLUGIN";
    private static final Version OLDEST = new Version(2, 27, 3);
    /** Older ones crash if a file in /dev/shm, with which they report kernels, can't be created. */
    private static final Version OLDEST_WITH_SHARED_MEMORY_CHECK = new Version(2, 32, 0);
    /** The size of that file, at each rank of a communicator. */
    private static final long KERNEL_MEMORY = 34L << 20;

    private static final List<String> CREATIONS =
            List.of("ncclCommInitRank", "ncclCommInitAll", "ncclCommInitRankConfig", "ncclCommInitRankScalable");

    private static final int BATCH = 4096;
    private static final long PAUSE = 10_000_000;
    private static final int SWEEP_EVERY = 20;
    /** Nanoseconds for which kernels are awaited after the recording has ended. */
    private static final long LINGER = 10_000_000_000L;

    /** Guards the state below. */
    private static final Object LOCK = new Object();

    private static boolean settingRead;
    private static boolean prepared;
    private static boolean recording;
    private static Thread thread;
    /** The time at which the recording ended last, of System.nanoTime. */
    private static long stopped;

    private static final List<Consumer<ProfiledOperation>> SUBSCRIBERS = new CopyOnWriteArrayList<>();
    private static final List<InspectorFile> FILES = new CopyOnWriteArrayList<>();

    /** Guards the reading of the queue: the objects below. */
    private static final Object READING = new Object();

    private static final ProfileAssembler ASSEMBLER = new ProfileAssembler(Profiler::publish);
    private static final Map<ProfileAssembler.Member, WeakReference<OperationLog>> LOGS = new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<ProfileAssembler.Member, WeakReference<OperationLog>> eldest) {
            return size() > 1024;
        }
    };
    private static boolean warnedOfMemory;
    private static NativeMemory batch;
    private static long published;
    private static long wallOffset;

    private Profiler() {}

    /**
     * Numbers of the profiler of this process.
     *
     * @param operations the number of operations that were given to subscribers
     * @param incomplete the number of these whose kernels were not reported, or not all of their channels
     * @param pending the number of operations whose kernels have not ended
     * @param dropped the number of records that were dropped because the queue was full; an operation has one record and two
     *     for each channel
     */
    public record Statistics(long operations, long incomplete, int pending, long dropped) {}

    /** A subscription. May be closed by any thread. */
    public interface Subscription extends AutoCloseable {
        /** Ends the subscription. Closing again does nothing. */
        @Override
        void close();
    }

    /**
     * Makes NCCL load the plugin with the next communicator, without recording. Calling it again does nothing.
     *
     * @throws IllegalStateException if a communicator was created before, or if the library is RCCL or older than 2.27.3
     */
    public static void prepare() {
        synchronized (LOCK) {
            if (prepared) {
                return;
            }
            NcclLibrary library = NcclLibrary.get();
            if (library.flavor() == NcclLibrary.Flavor.RCCL) {
                throw new IllegalStateException("the profiler is for NCCL's interface, loaded is " + library);
            }
            if (!library.version().isAtLeast(OLDEST)) {
                throw new IllegalStateException("the profiler needs NCCL " + OLDEST + ", loaded is " + library);
            }
            for (String function : CREATIONS) {
                if (NativeLibrary.wasCalled(function)) {
                    throw new IllegalStateException("the profiler must be prepared before the first communicator: "
                            + function + " was called, and NCCL looks for plugins once");
                }
            }
            String path = ProfilerQueue.pluginPath();
            String other = SystemText.environment().get(PLUGIN);
            if (other != null && !other.equals(path)) {
                ProfilerQueue.chain(other);
            }
            if (!library.version().isAtLeast(OLDEST_WITH_SHARED_MEMORY_CHECK)) {
                ProfilerQueue.kernelMemory(KERNEL_MEMORY);
            }
            NativeLibrary.setVariable(PLUGIN, path);
            prepared = true;
        }
    }

    /**
     * Starts recording in all communicators. Operations under way are not recorded. Calling it again does nothing.
     *
     * @throws IllegalStateException as {@link #prepare}
     */
    public static void start() {
        synchronized (LOCK) {
            prepare();
            // The thread waits for this lock before it may end.
            if (thread == null) {
                thread = DaemonThreads.start("nccl4j profiler", Profiler::readForever);
            }
            recording = true;
            ProfilerQueue.record(true);
        }
    }

    /**
     * Stops recording, and gives the operations whose kernels have ended to the subscribers, as {@link #flush}.
     */
    public static void stop() {
        synchronized (LOCK) {
            if (!recording) {
                return;
            }
            recording = false;
            stopped = System.nanoTime();
            ProfilerQueue.record(false);
        }
        flush();
    }

    /** {@return true between {@link #start} and {@link #stop}} */
    public static boolean isRecording() {
        synchronized (LOCK) {
            return recording;
        }
    }

    /**
     * Gives the operations whose kernels have ended to the subscribers, which are called in this thread. NCCL reports the end
     * of a kernel some microseconds after it.
     */
    public static void flush() {
        synchronized (LOCK) {
            if (!prepared) {
                return;
            }
        }
        read();
        FILES.forEach(InspectorFile::flush);
    }

    /**
     * Adds a subscriber, which gets every operation when its kernel has ended; the operations of a communicator in no certain
     * order. It is called in one thread at a time, and must not wait, because the queue can become full meanwhile. Its
     * exceptions are logged.
     *
     * @param subscriber the subscriber
     * @return the subscription
     */
    public static Subscription subscribe(Consumer<ProfiledOperation> subscriber) {
        Objects.requireNonNull(subscriber, "subscriber");
        // An object of its own: a subscriber may be added twice.
        Consumer<ProfiledOperation> one = operation -> subscriber.accept(operation);
        SUBSCRIBERS.add(one);
        return () -> SUBSCRIBERS.remove(one);
    }

    /**
     * Writes the operations from now on to the file {@code <host>-pid<process>.log} in a folder, in the JSON format of NCCL
     * Inspector. Operations without times of a kernel are not written.
     *
     * @param folder the folder; created if it does not exist
     * @return the subscription; closing it closes the file
     * @throws java.io.UncheckedIOException if the file can't be created
     */
    public static Subscription writeTo(Path folder) {
        InspectorFile file = new InspectorFile(folder);
        Subscription subscription = subscribe(file::write);
        FILES.add(file);
        return () -> {
            subscription.close();
            FILES.remove(file);
            file.close();
        };
    }

    /** {@return the numbers of this process} */
    public static Statistics statistics() {
        synchronized (LOCK) {
            if (!prepared) {
                return new Statistics(0, 0, 0, 0);
            }
        }
        synchronized (READING) {
            return new Statistics(published, ASSEMBLER.incomplete(), ASSEMBLER.pending(), ProfilerQueue.dropped());
        }
    }

    /**
     * Starts the profiler if a setting asks for it; called before a communicator is created. A second thread waits until the first
     * one has done so: NCCL must not look for plugins before.
     */
    static void startBySetting() {
        synchronized (LOCK) {
            if (!settingRead) {
                settingRead = true;
                readSetting();
            }
        }
    }

    private static void readSetting() {
        String wanted = SystemText.property(PROPERTY);
        if (wanted == null) {
            wanted = SystemText.environment().getOrDefault("NCCL4J_PROFILE", "");
        }
        wanted = wanted.strip();
        if (wanted.isEmpty() || wanted.equals("off")) {
            return;
        }
        try {
            if (wanted.equals("ready")) {
                prepare();
                return;
            }
            if (!wanted.equals("on")) {
                Subscription file = writeTo(SystemText.path(wanted));
                Runtime.getRuntime()
                        .addShutdownHook(new Thread(
                                () -> {
                                    stop();
                                    file.close();
                                },
                                "nccl4j profiler end"));
            }
            start();
        } catch (IllegalStateException | java.io.UncheckedIOException | InvalidPathException e) {
            // The program itself can run.
            System.getLogger("io.github.nccl4j")
                    .log(Level.WARNING, PROPERTY + " (NCCL4J_PROFILE) is ''{0}'': {1}", wanted, e.getMessage());
        }
    }

    private static void readForever() {
        int[] pass = new int[1];
        ServiceLoop.run("the profiler", () -> readOnce(pass[0]++));
    }

    /** Returns false if the thread ends. */
    private static boolean readOnce(int pass) {
        read();
        // Not within the other lock, which a subscriber may want.
        boolean pending = hasPending();
        synchronized (LOCK) {
            // Kernels may end after the recording.
            if (!recording && (!pending || System.nanoTime() - stopped > LINGER)) {
                thread = null;
                return false;
            }
        }
        if (pass % SWEEP_EVERY == 0) {
            synchronized (READING) {
                ASSEMBLER.sweep(System.nanoTime());
            }
            FILES.forEach(Profiler::flushQuietly);
        }
        LockSupport.parkNanos(PAUSE);
        return true;
    }

    private static boolean hasPending() {
        synchronized (READING) {
            return ASSEMBLER.pending() > 0;
        }
    }

    private static void flushQuietly(InspectorFile file) {
        try {
            file.flush();
        } catch (java.io.UncheckedIOException e) {
            warn(e);
        }
    }

    private static void read() {
        synchronized (READING) {
            if (!warnedOfMemory && ProfilerQueue.withoutKernels()) {
                warnedOfMemory = true;
                System.getLogger("io.github.nccl4j")
                        .log(
                                Level.WARNING,
                                "the profiler records no kernel times: {0} needs {1} MiB in /dev/shm for each rank of each"
                                        + " communicator, and less was free. Enlarge /dev/shm (docker run --shm-size=1g), or"
                                        + " use NCCL {2}" + HelpText.of("NCCL4J-0126"),
                                NcclLibrary.get(),
                                KERNEL_MEMORY >> 20,
                                OLDEST_WITH_SHARED_MEMORY_CHECK);
            }
            if (batch == null) {
                // Kept: the queue is read as long as the process lives.
                batch = new NativeMemory(BATCH * ProfilerQueue.RECORD_SIZE);
            }
            wallOffset = System.currentTimeMillis() * 1_000_000 - System.nanoTime();
            int taken;
            do {
                taken = ProfilerQueue.drain(batch.address(), BATCH);
                ASSEMBLER.add(batch.buffer(), taken);
            } while (taken == BATCH);
        }
    }

    private static void publish(ProfileAssembler.Operation raw) {
        ProfiledOperation operation = operation(raw);
        published++;
        if (Jfr.recording) {
            JfrEvents.recordKernel(operation);
        }
        for (Consumer<ProfiledOperation> subscriber : SUBSCRIBERS) {
            try {
                subscriber.accept(operation);
            } catch (RuntimeException | Error e) {
                warn(e);
            }
        }
    }

    private static void warn(Throwable failure) {
        ServiceLoop.log(Level.WARNING, "a subscriber of the profiler failed", failure);
    }

    private static ProfiledOperation operation(ProfileAssembler.Operation raw) {
        ProfileAssembler.Member member = raw.member;
        String function = "nccl" + raw.function;
        boolean timed = raw.kernelStart != 0;
        long wall = raw.launched + wallOffset;
        return new ProfiledOperation(
                member.id(),
                member.name(),
                member.rank(),
                member.size(),
                member.nodes(),
                function,
                raw.message ? OptionalLong.empty() : sequence(member, function, raw.number),
                raw.number,
                raw.count,
                raw.datatype,
                raw.count * ProfiledOperation.elementSize(raw.datatype),
                raw.peer,
                raw.algorithm,
                raw.protocol,
                raw.channels,
                raw.warps,
                raw.tag,
                Instant.ofEpochSecond(Math.floorDiv(wall, 1_000_000_000L), Math.floorMod(wall, 1_000_000_000L)),
                timed ? Optional.of(Duration.ofNanos(Math.max(0, raw.started - raw.launched))) : Optional.empty(),
                timed ? Optional.of(Duration.ofNanos(Math.max(0, raw.kernelEnd - raw.kernelStart))) : Optional.empty());
    }

    /** The number of the operation in the flight recorder of the communicator. */
    private static OptionalLong sequence(ProfileAssembler.Member member, String function, long number) {
        WeakReference<OperationLog> known = LOGS.get(member);
        if (known == null && member.rank() >= 0) {
            OperationLog found = FlightRecord.logOf(member.name(), member.rank(), member.size(), member.created());
            if (found != null) {
                known = new WeakReference<>(found);
                LOGS.put(member, known);
            }
        }
        OperationLog log = known == null ? null : known.get();
        long sequence = log == null ? 0 : log.sequenceOf(OperationKind.of(function), number + 1);
        return sequence == 0 ? OptionalLong.empty() : OptionalLong.of(sequence);
    }
}
