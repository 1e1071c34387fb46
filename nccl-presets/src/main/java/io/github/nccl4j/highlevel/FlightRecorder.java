package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorSettings;
import io.github.nccl4j.internal.log.HostName;
import io.github.nccl4j.internal.log.Json;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.library.SystemText;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.stream.Stream;

/**
 * The record of a communicator's last operations, for diagnosing a failure or a hang. It contains the operations that
 * were passed to NCCL, with the times of their calls and of their observed completion.
 *
 * <pre>{@code
 * System.err.println(communicator.flightRecorder().toJson());
 * }</pre>
 *
 * <p>If all ranks call the same operations, a collective has the same sequence number on all ranks. The first number at
 * which the records of two ranks differ shows where they diverged. The {@code id} of a communicator is the same in the
 * records of all ranks. The command {@code nccl4j analyze} compares the files of all ranks and names the rank that
 * differs.
 *
 * <p><b>Times.</b> Reading a clock would cost more than the rest of the recording. Therefore an operation gets the time
 * of a clock that the {@linkplain CommunicatorBuilder#watchdog watchdog} sets every 100 ms; without a watchdog, operations
 * have no times. An operation counts as done once later {@link Work} of its stream was observed as done, by a waiting
 * thread or by the watchdog. An operation that was not observed as done may be done nevertheless.
 *
 * <p><b>On failure.</b> The message of an exception ends with the last operations. If the property {@code
 * nccl4j.recorder.dump} or the environment variable {@code NCCL4J_RECORDER_DUMP} names a folder, the first failure of
 * each communicator writes all recorded operations to a file there, and the message names the file. The records of the
 * process's other communicators are written, too, because one of them may be the cause.
 *
 * <p><b>JDK Flight Recorder</b>, if the runtime has it and a recording is active, gets the events {@code
 * nccl4j.Operation}, {@code nccl4j.Group}, {@code nccl4j.Wait}, {@code nccl4j.Creation} and {@code nccl4j.Failure}.
 *
 * <p><b>Cost.</b> A few stores into an array per operation, and no allocation. {@link
 * CommunicatorBuilder#flightRecorder} sets the number of operations that are kept.
 *
 * <p><b>Threads.</b> All methods may be called from any thread at any time, also after the communicator has ended.
 *
 * @since 0.1
 */
public final class FlightRecorder {
    /** Default number of operations that are kept. */
    public static final int DEFAULT_KEPT = CommunicatorSettings.DEFAULT_RECORDED;

    private static final String FOLDER = "nccl4j.recorder.dump";
    private static final int TOLD = 4;
    private static final Object FILES = new Object();
    private static final Set<FlightRecorder> ALL = Collections.newSetFromMap(new WeakHashMap<>());
    private static final int ENDED_KEPT = 64;

    /** Those of communicators that ended last: the profiler reports operations some milliseconds later. */
    private static final Deque<WeakReference<FlightRecorder>> ENDED = new ArrayDeque<>();

    private final CommunicatorInfo communicator;
    private final OperationLog log;

    /** True once a failure has written the file. Guarded by the lock of the files. */
    private boolean written;

    /** The operations when the failure of another communicator wrote the file, or null. Guarded by the lock of the files. */
    private OperationLog.Snapshot seen;

    /** The time at which the communicator was created, of System.nanoTime. */
    private long begun;

    FlightRecorder(CommunicatorInfo communicator) {
        this.communicator = communicator;
        log = communicator.operationLog();
    }

    /**
     * A recorded operation.
     *
     * @param sequence the number of the operation in the communicator, from 1
     * @param group the number of the group that launched the operation, from 1; empty if it was in no group
     * @param function the C function
     * @param count the number of elements; for {@code ncclWaitSignal}, the number of signals
     * @param type the type of the elements; empty if the operation has none
     * @param op the operator; empty if the operation has none
     * @param peer the root or the other rank; empty if the operation has none
     * @param stream the handle of the stream
     * @param enqueued the time of the call, rounded down; empty without a watchdog
     * @param done the time at which the operation was observed as done; empty if it was not
     */
    public record Operation(
            long sequence,
            OptionalInt group,
            String function,
            long count,
            Optional<ElementType<?>> type,
            Optional<String> op,
            OptionalInt peer,
            long stream,
            Optional<Instant> enqueued,
            Optional<Instant> done) {

        private static Operation of(OperationLog.Entry entry) {
            OperationKind kind = entry.kind();
            return new Operation(
                    entry.sequence(),
                    entry.group() == 0 ? OptionalInt.empty() : OptionalInt.of(entry.group()),
                    entry.function(),
                    entry.count(),
                    kind.hasElements() ? Optional.of(ElementType.values().get(entry.type())) : Optional.empty(),
                    kind.reduces() ? Optional.of(OperationKind.operator(entry.op())) : Optional.empty(),
                    kind.hasPeer() && entry.peer() >= 0 ? OptionalInt.of(entry.peer()) : OptionalInt.empty(),
                    entry.stream(),
                    time(entry.enqueued()),
                    time(entry.done()));
        }

        private static Optional<Instant> time(long milliseconds) {
            return milliseconds == 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(milliseconds));
        }
    }

    /** {@return the operations that are kept, the oldest first} */
    public List<Operation> operations() {
        return log.entries().stream().map(Operation::of).toList();
    }

    /** {@return the number of operations called so far} */
    public long recorded() {
        return log.recorded();
    }

    /**
     * Returns the recorded operations and the description of the communicator.
     *
     * @return JSON, as in a file of {@link #dump}
     */
    public String toJson() {
        NcclException failure = communicator.failure();
        return json(failure == null ? null : failure.getMessage(), log.snapshot());
    }

    private String json(String failure, OperationLog.Snapshot snapshot) {
        Json json = new Json();
        json.begin()
                .field("format", "nccl4j flight recorder 1")
                .field("time", Instant.now().toString())
                .field("process", ProcessHandle.current().pid())
                .field("host", HostName.get())
                .field("library", communicator.library().toString())
                .field("id", communicator.identity())
                .field("name", communicator.name())
                .field("rank", communicator.expectedRank())
                .field("size", communicator.expectedSize())
                .field("world", communicator.worldRank() < 0 ? null : (Integer) communicator.worldRank())
                .field("device", communicator.device().toString())
                .field("state", communicator.state().toString())
                .field("failure", failure);
        if (!communicator.waitsIn().isEmpty()) {
            json.field("call", communicator.waitsIn())
                    .field(
                            "called",
                            Instant.ofEpochMilli(communicator.waitsSince()).toString());
        }
        json.field("recorded", log.recorded())
                .field("collectives", snapshot.collectives() < 0 ? null : (Long) snapshot.collectives());
        List<Operation> operations =
                snapshot.entries().stream().map(Operation::of).toList();
        json.list("operations", operations, FlightRecorder::write);
        return json.end().toString();
    }

    private static void write(Json json, Operation operation) {
        json.field("sequence", operation.sequence())
                .field("group", number(operation.group()))
                .field("function", operation.function())
                .field("count", operation.count())
                .field("type", operation.type().map(Object::toString).orElse(null))
                .field("op", operation.op().orElse(null))
                .field("peer", number(operation.peer()))
                .field("stream", "0x" + Long.toHexString(operation.stream()))
                .field("enqueued", operation.enqueued().map(Instant::toString).orElse(null))
                .field("done", operation.done().map(Instant::toString).orElse(null));
    }

    private static Long number(OptionalInt value) {
        return value.isPresent() ? Long.valueOf(value.getAsInt()) : null;
    }

    /**
     * Writes {@link #toJson()} to a file, replacing its content.
     *
     * @param file the file, in an existing folder
     * @throws IOException if the file can't be written
     */
    public void dump(Path file) throws IOException {
        Files.writeString(Objects.requireNonNull(file, "file"), toJson());
    }

    /**
     * Writes the records of all communicators of this process that have not ended; for a program that hangs.
     *
     * @param folder the folder; created if it does not exist
     * @return the files, named {@code nccl4j-<process>-<id>-rank<rank>.json}
     * @throws IOException if a file can't be written
     */
    public static List<Path> dumpAll(Path folder) throws IOException {
        List<FlightRecorder> all;
        synchronized (ALL) {
            all = new ArrayList<>(ALL);
        }
        Files.createDirectories(folder);
        List<Path> files = new ArrayList<>();
        for (FlightRecorder one : all) {
            Path file = folder.resolve(one.fileName());
            one.dump(file);
            files.add(file);
        }
        return files;
    }

    private String fileName() {
        return "nccl4j-" + ProcessHandle.current().pid() + "-"
                + communicator.identity().replaceAll("[^0-9a-z.]+", "-") + "-rank" + communicator.expectedRank()
                + ".json";
    }

    /** Called when the communicator has been created. */
    void begin() {
        begun = System.nanoTime();
        synchronized (ALL) {
            ALL.add(this);
        }
    }

    /**
     * The log of the communicator of this process that has these properties and was created next after a time of {@link
     * System#nanoTime}; null if there is none.
     */
    static OperationLog logOf(String name, int rank, int size, long after) {
        synchronized (ALL) {
            Stream<FlightRecorder> ended =
                    ENDED.stream().map(WeakReference::get).filter(Objects::nonNull);
            return Stream.concat(ALL.stream(), ended)
                    .filter(recorder -> recorder.begun - after >= 0
                            && recorder.communicator.name().equals(name)
                            && recorder.communicator.expectedRank() == rank
                            && recorder.communicator.expectedSize() == size)
                    .min(Comparator.comparingLong(recorder -> recorder.begun - after))
                    .map(recorder -> recorder.log)
                    .orElse(null);
        }
    }

    /** Called when the communicator has ended. */
    void end() {
        synchronized (ALL) {
            if (ALL.remove(this)) {
                if (ENDED.size() == ENDED_KEPT) {
                    ENDED.removeFirst();
                }
                ENDED.addLast(new WeakReference<>(this));
            }
        }
    }

    /** Returns the last operations for a message; empty if there were none. */
    String tail() {
        List<OperationLog.Entry> entries = log.entries();
        if (entries.isEmpty()) {
            return "";
        }
        long now = System.currentTimeMillis();
        StringBuilder text = new StringBuilder("Last operations of this rank:");
        for (OperationLog.Entry entry : entries.subList(Math.max(0, entries.size() - TOLD), entries.size())) {
            text.append("\n  ").append(entry.describe());
            if (entry.enqueued() != 0) {
                text.append(", called ").append(seconds(now - entry.enqueued())).append(" ago");
            }
            text.append(entry.done() == 0 ? ", not observed as done" : ", done");
        }
        return text.toString();
    }

    /**
     * Names the last operations of this rank's other communicators that are in one stream with the last operation of this one, if
     * neither was observed as done; empty if there are none.
     */
    String othersInStream() {
        OperationLog.Entry last = log.last();
        if (last.sequence() == 0 || last.done() != 0) {
            return "";
        }
        // What was called before an operation of the stream that is done is done, too.
        long since = log.entries().stream()
                .filter(entry -> entry.stream() == last.stream() && entry.done() != 0)
                .mapToLong(OperationLog.Entry::enqueued)
                .max()
                .orElse(0);
        List<FlightRecorder> all;
        synchronized (ALL) {
            all = new ArrayList<>(ALL);
        }
        List<String> others = new ArrayList<>();
        for (FlightRecorder one : all) {
            OperationLog.Entry other = one.log.last();
            // Ranks that are threads of one process have the default stream in common.
            boolean ofThisRank = one != this
                    && one.communicator.worldRank() == communicator.worldRank()
                    && one.communicator.device().equals(communicator.device());
            if (ofThisRank
                    && other.sequence() > 0
                    && other.stream() == last.stream()
                    && other.done() == 0
                    && other.enqueued() >= since) {
                others.add(other.describe() + " of communicator " + one.communicator.identity());
            }
        }
        return others.isEmpty()
                ? ""
                : "In the same stream, not observed as done: " + String.join("; ", others)
                        + ". Operations of several communicators in one stream wait for each other if ranks call them in"
                        + " different orders";
    }

    /** A time for messages, such as "1.2 s", rounded down; the clock may have been set back. */
    static String seconds(long milliseconds) {
        return Math.max(0, milliseconds) / 100 / 10.0 + " s";
    }

    /**
     * Writes the files for the first failure if a folder is set, and returns the name of this communicator's file for the
     * message, else an empty text.
     */
    String dumpFor(String failure) {
        String folder = SystemText.property(FOLDER);
        if (folder == null) {
            folder = SystemText.environment().getOrDefault("NCCL4J_RECORDER_DUMP", "");
        }
        if (folder.isEmpty()) {
            return "";
        }
        List<FlightRecorder> others;
        synchronized (ALL) {
            others = new ArrayList<>(ALL);
        }
        String name = folder + "/" + fileName();
        // Two failures must not write one file at the same time.
        synchronized (FILES) {
            written = true;
            try {
                write(name, json(failure, atFirstFailure()));
                for (FlightRecorder other : others) {
                    // A communicator that has failed wrote its own file, at that moment.
                    if (!other.written) {
                        other.seen = other.log.snapshot();
                        write(folder + "/" + other.fileName(), other.toJson());
                    }
                }
                return "Flight recorder: " + name;
            } catch (IOException | InvalidPathException e) {
                System.getLogger("io.github.nccl4j")
                        .log(Level.WARNING, "the flight recorder could not write " + name, e);
                return "Flight recorder: " + name + " could not be written: " + e;
            }
        }
    }

    /**
     * The operations for the file of a failure. If the last one waited when another communicator failed, it may have ended since
     * only because the program or the watchdog gave up that communicator: the file must show that it waited.
     */
    private OperationLog.Snapshot atFirstFailure() {
        OperationLog.Snapshot now = log.snapshot();
        if (seen == null || seen.entries().isEmpty()) {
            return now;
        }
        OperationLog.Entry last = seen.entries().get(seen.entries().size() - 1);
        return last.done() == 0 && last.sequence() == log.recorded() ? seen : now;
    }

    private static void write(String name, String json) throws IOException {
        Path file = SystemText.path(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, json);
    }
}
