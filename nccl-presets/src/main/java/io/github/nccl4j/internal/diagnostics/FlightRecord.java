package io.github.nccl4j.internal.diagnostics;

import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.internal.log.HostName;
import io.github.nccl4j.internal.log.Json;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.operation.Operator;
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
import java.util.Set;
import java.util.WeakHashMap;
import java.util.stream.Stream;

/** The record of a communicator's last operations: as text for messages and as JSON for files. For any thread. */
public final class FlightRecord {
    private static final String FOLDER = "nccl4j.recorder.dump";
    private static final int TOLD = 4;
    private static final Object FILES = new Object();
    private static final Set<FlightRecord> ALL = Collections.newSetFromMap(new WeakHashMap<>());
    private static final int ENDED_KEPT = 64;

    /** Those of communicators that ended last: the profiler reports operations some milliseconds later. */
    private static final Deque<WeakReference<FlightRecord>> ENDED = new ArrayDeque<>();

    private final CommunicatorInfo communicator;
    private final OperationLog log;

    /** True once a failure has written the file. Guarded by the lock of the files. */
    private boolean written;

    /** The operations when the failure of another communicator wrote the file, or null. Guarded by the lock of the files. */
    private OperationLog.Snapshot seen;

    /** The time at which the communicator was created, of System.nanoTime. */
    private long begun;

    public FlightRecord(CommunicatorInfo communicator) {
        this.communicator = communicator;
        log = communicator.operationLog();
    }

    public OperationLog log() {
        return log;
    }

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
        json.list("operations", snapshot.entries(), FlightRecord::write);
        return json.end().toString();
    }

    private static void write(Json json, OperationLog.Entry entry) {
        OperationKind kind = entry.kind();
        json.field("sequence", entry.sequence())
                .field("group", entry.group() == 0 ? null : (Long) (long) entry.group())
                .field("function", entry.function())
                .field("count", entry.operation().elements().count())
                .field(
                        "type",
                        kind.hasElements()
                                ? ElementType.values()
                                        .get(entry.operation().elements().type())
                                        .toString()
                                : null)
                .field("op", kind.reduces() ? Operator.nameOf(entry.operation().op()) : null)
                .field(
                        "peer",
                        kind.hasPeer() && entry.operation().peer() >= 0
                                ? (Long) (long) entry.operation().peer()
                                : null)
                .field("stream", "0x" + Long.toHexString(entry.operation().stream()))
                .field("enqueued", time(entry.enqueued()))
                .field("done", time(entry.done()));
    }

    private static String time(long milliseconds) {
        return milliseconds == 0 ? null : Instant.ofEpochMilli(milliseconds).toString();
    }

    /** Writes the records of all communicators of this process that have not ended; returns the files. */
    public static List<Path> dumpAll(Path folder) throws IOException {
        List<FlightRecord> all = all();
        Files.createDirectories(folder);
        List<Path> files = new ArrayList<>();
        for (FlightRecord one : all) {
            Path file = folder.resolve(one.fileName());
            Files.writeString(file, one.toJson());
            files.add(file);
        }
        return files;
    }

    private static List<FlightRecord> all() {
        synchronized (ALL) {
            return new ArrayList<>(ALL);
        }
    }

    private String fileName() {
        return "nccl4j-" + ProcessHandle.current().pid() + "-"
                + communicator.identity().replaceAll("[^0-9a-z.]+", "-") + "-rank" + communicator.expectedRank()
                + ".json";
    }

    /** Called when the communicator has been created. */
    public void begin() {
        begun = System.nanoTime();
        synchronized (ALL) {
            ALL.add(this);
        }
    }

    /**
     * The log of the communicator of this process that has these properties and was created next after a time of {@link
     * System#nanoTime}; null if there is none.
     */
    public static OperationLog logOf(String name, int rank, int size, long after) {
        synchronized (ALL) {
            Stream<FlightRecord> ended = ENDED.stream().map(WeakReference::get).filter(Objects::nonNull);
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
    public void end() {
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
    public String tail() {
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
    public String othersInStream() {
        OperationLog.Entry last = log.last();
        if (last.sequence() == 0 || last.done() != 0) {
            return "";
        }
        // What was called before an operation of the stream that is done is done, too.
        long since = log.entries().stream()
                .filter(entry -> entry.operation().stream() == last.operation().stream() && entry.done() != 0)
                .mapToLong(OperationLog.Entry::enqueued)
                .max()
                .orElse(0);
        List<String> others = new ArrayList<>();
        for (FlightRecord one : all()) {
            OperationLog.Entry other = one.log.last();
            // Ranks that are threads of one process have the default stream in common.
            boolean ofThisRank = one != this
                    && one.communicator.worldRank() == communicator.worldRank()
                    && one.communicator.device().equals(communicator.device());
            if (ofThisRank
                    && other.sequence() > 0
                    && other.operation().stream() == last.operation().stream()
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
    public static String seconds(long milliseconds) {
        return Math.max(0, milliseconds) / 100 / 10.0 + " s";
    }

    /**
     * Writes the files for the first failure if a folder is set, and returns the name of this communicator's file for the
     * message, else an empty text.
     */
    public String dumpFor(String failure) {
        String folder = SystemText.property(FOLDER);
        if (folder == null) {
            folder = SystemText.environment().getOrDefault("NCCL4J_RECORDER_DUMP", "");
        }
        if (folder.isEmpty()) {
            return "";
        }
        List<FlightRecord> others = all();
        String name = folder + "/" + fileName();
        // Two failures must not write one file at the same time.
        synchronized (FILES) {
            written = true;
            try {
                write(name, json(failure, atFirstFailure()));
                for (FlightRecord other : others) {
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
