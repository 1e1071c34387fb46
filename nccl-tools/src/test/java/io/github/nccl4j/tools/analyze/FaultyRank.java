package io.github.nccl4j.tools.analyze;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.FlightRecorder;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.launch.Signals;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** A rank of a job that makes one mistake after another, each with a new communicator and a folder for its records. */
public final class FaultyRank {
    /** The mistakes, in this order; the last one costs a rank its life. */
    static final List<String> FAULTS = List.of(
            "missing-call",
            "other-function",
            "other-type",
            "other-count",
            "other-root",
            "other-reduction",
            "communicator-order",
            "stream-order",
            "missing-split",
            "slow",
            "missing-receive",
            "crashed-dump",
            "stopped",
            "killed");

    private static final CudaStream STREAM = CudaStream.defaultOf(Device.host());
    private static final Duration LIMIT = Duration.ofMinutes(2);
    private static final int CULPRIT = 2;

    private final int rank;
    private final Rendezvous job;
    private final Path folder;
    private final DeviceBuffer<Int32> ints = Device.host().allocate(ElementType.INT32, 64);
    private final DeviceBuffer<Float32> floats = Device.host().allocate(ElementType.FLOAT32, 64);
    private final Duration deadline;

    private FaultyRank(RankInfo self, Path folder) {
        rank = self.rank();
        job = TcpStore.ofProcess(self, LIMIT);
        this.folder = folder;
        deadline = chooseDeadline();
    }

    /**
     * Makes the mistakes.
     *
     * @param args the folder for the folders of the records
     * @throws Exception if a rank fails in another way than it should
     */
    public static void main(String[] args) throws Exception {
        FaultyRank self = new FaultyRank(RankInfo.fromEnvironment(), Path.of(args[0]));
        for (String fault : FAULTS) {
            self.run(fault);
        }
        Runtime.getRuntime().halt(0);
    }

    /** On a busy machine what is no mistake must end in time, too: many times what it takes the slowest rank. */
    private Duration chooseDeadline() {
        long slowest = 0;
        // The first communicator also takes the time to load classes.
        for (int i = 0; i < 2; i++) {
            long start = System.nanoTime();
            begin(LIMIT).abort();
            String own = Long.toString(System.nanoTime() - start);
            slowest = job.gather("time-" + i, own.getBytes(StandardCharsets.UTF_8), LIMIT).stream()
                    .mapToLong(time -> Long.parseLong(new String(time, StandardCharsets.UTF_8)))
                    .max()
                    .orElseThrow();
        }
        return Duration.ofNanos(Math.max(1_500_000_000, 20 * slowest));
    }

    /** A communicator whose ranks have called it three times. */
    private Communicator begin(Duration deadline) {
        Communicator communicator =
                Communicator.builder().device(Device.host()).deadline(deadline).fromEnvironment();
        for (int i = 0; i < 3; i++) {
            communicator.allReduce(ints, ReduceOp.SUM, STREAM);
        }
        communicator.work(STREAM).await();
        return communicator;
    }

    /** Waits for communicators that end in another thread: the next records must not contain theirs. */
    private void awaitEnd() throws IOException, InterruptedException {
        Path others = folder.resolve("others-of-rank-" + rank);
        Waiting.until(
                "end of the communicators", () -> FlightRecorder.dumpAll(others).isEmpty());
    }

    private boolean isCulprit() {
        return rank == CULPRIT;
    }

    private void run(String fault) throws IOException, InterruptedException {
        System.setProperty("nccl4j.recorder.dump", folder.resolve(fault).toString());
        Communicator communicator = begin(fault.equals("slow") ? LIMIT : deadline);
        try {
            make(fault, communicator);
        } catch (NcclException expected) {
            System.out.println(
                    fault + ": " + expected.getMessage().lines().findFirst().orElse(""));
        }
        communicator.abort();
        awaitEnd();
        if (!fault.equals("killed")) {
            job.barrier("done-" + fault, LIMIT);
        }
    }

    private void make(String fault, Communicator communicator) throws IOException, InterruptedException {
        switch (fault) {
            case "missing-call" -> {
                try {
                    if (!isCulprit()) {
                        communicator.allReduce(ints, ReduceOp.SUM, STREAM);
                        communicator.work(STREAM).await();
                    }
                } finally {
                    // The program of the other rank does something else meanwhile; it writes its record on request.
                    job.barrier("waited", LIMIT);
                    FlightRecorder.dumpAll(dumps());
                }
            }
            case "other-function" -> {
                if (isCulprit()) {
                    communicator.broadcast(ints, 0, STREAM);
                } else {
                    communicator.allReduce(ints, ReduceOp.SUM, STREAM);
                }
            }
            case "other-type" -> {
                if (isCulprit()) {
                    communicator.allReduce(floats, ReduceOp.SUM, STREAM);
                } else {
                    communicator.allReduce(ints, ReduceOp.SUM, STREAM);
                }
            }
            case "other-count" -> communicator.allReduce(ints.slice(0, isCulprit() ? 32 : 64), ReduceOp.SUM, STREAM);
            case "other-root" -> {
                communicator.broadcast(ints, isCulprit() ? 1 : 0, STREAM);
                // A root waits for nobody, and compares its call in the next one.
                communicator.allReduce(ints, ReduceOp.SUM, STREAM);
            }
            case "other-reduction" -> communicator.allReduce(ints, isCulprit() ? ReduceOp.MAX : ReduceOp.SUM, STREAM);
            case "communicator-order" -> {
                try (Communicator other = communicator.split(0, rank)) {
                    (isCulprit() ? other : communicator).allReduce(ints, ReduceOp.SUM, STREAM);
                    (isCulprit() ? communicator : other).allReduce(ints, ReduceOp.SUM, STREAM);
                }
            }
            case "stream-order" -> {
                try (CudaStream stream = CudaStream.nonBlocking(Device.host());
                        Communicator other = communicator.split(0, rank)) {
                    (isCulprit() ? other : communicator).allReduce(ints, ReduceOp.SUM, stream);
                    (isCulprit() ? communicator : other).allReduce(ints, ReduceOp.SUM, stream);
                    communicator.work(stream).await();
                }
            }
            case "missing-split" -> {
                try {
                    if (!isCulprit()) {
                        communicator.split(0, rank).close();
                    }
                } finally {
                    job.barrier("split", LIMIT);
                    FlightRecorder.dumpAll(dumps());
                }
            }
            case "missing-receive" -> {
                try {
                    if (rank == 0) {
                        communicator.send(ints, CULPRIT, STREAM);
                        communicator.work(STREAM).await();
                    }
                } finally {
                    job.barrier("sent", LIMIT);
                    FlightRecorder.dumpAll(dumps());
                }
            }
            case "slow" -> {
                for (int i = 0; i < 4; i++) {
                    if (isCulprit()) {
                        Thread.sleep(400);
                    }
                    communicator.allReduce(ints, ReduceOp.SUM, STREAM);
                    communicator.work(STREAM).await();
                }
                // A rank that aborts ends the last operation of one that is later.
                job.barrier("all-reduced", LIMIT);
                FlightRecorder.dumpAll(dumps());
            }
            case "crashed-dump" -> {
                if (isCulprit()) {
                    FlightRecorder.dumpAll(dumps());
                    cutOwnRecord();
                } else {
                    communicator.allReduce(ints, ReduceOp.SUM, STREAM);
                    communicator.work(STREAM).await();
                }
            }
            case "stopped" -> {
                long pid = ProcessHandle.current().pid();
                List<byte[]> all = job.gather("pids", Long.toString(pid).getBytes(StandardCharsets.UTF_8), LIMIT);
                String stopped = new String(all.get(CULPRIT), StandardCharsets.UTF_8);
                if (isCulprit()) {
                    // Once it continues, it must not write a record.
                    System.clearProperty("nccl4j.recorder.dump");
                    Signals.send("STOP", pid);
                    return;
                }
                // Until it is, it would answer.
                Waiting.until(
                        "process " + stopped + " stopped", () -> Files.readString(Path.of("/proc", stopped, "stat"))
                                .contains(") T "));
                try {
                    communicator.allReduce(ints, ReduceOp.SUM, STREAM);
                    communicator.work(STREAM).await();
                } finally {
                    if (rank == 0) {
                        // The other ranks ask the stopped one, too.
                        awaitRecords();
                        Signals.send("CONT", Long.parseLong(stopped));
                    }
                }
            }
            case "killed" -> {
                if (isCulprit()) {
                    Signals.send("KILL", ProcessHandle.current().pid());
                }
                communicator.allReduce(ints, ReduceOp.SUM, STREAM);
                communicator.work(STREAM).await();
            }
            default -> throw new IllegalArgumentException(fault);
        }
    }

    private static Path dumps() {
        return Path.of(System.getProperty("nccl4j.recorder.dump"));
    }

    /** Leaves the first part of this rank's file, as a process does that ends while it writes. */
    private static void cutOwnRecord() throws IOException {
        for (Path file : records()) {
            if (file.toString().endsWith("-rank" + CULPRIT + ".json")) {
                byte[] whole = Files.readAllBytes(file);
                Files.write(file, Arrays.copyOf(whole, whole.length * 3 / 4));
            }
        }
    }

    private static void awaitRecords() throws IOException, InterruptedException {
        Waiting.until(
                "three records", () -> Files.isDirectory(dumps()) && records().size() >= 3);
    }

    private static List<Path> records() throws IOException {
        try (Stream<Path> files = Files.list(dumps())) {
            return files.toList();
        }
    }
}
