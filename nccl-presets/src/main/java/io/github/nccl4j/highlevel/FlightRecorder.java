package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.communicator.CommunicatorSettings;
import io.github.nccl4j.internal.diagnostics.FlightRecord;
import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.operation.Operator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;

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

    private final FlightRecord record;

    FlightRecorder(FlightRecord record) {
        this.record = record;
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
                    entry.operation().elements().count(),
                    kind.hasElements()
                            ? Optional.of(ElementType.values()
                                    .get(entry.operation().elements().type()))
                            : Optional.empty(),
                    kind.reduces()
                            ? Optional.of(Operator.nameOf(entry.operation().op()))
                            : Optional.empty(),
                    kind.hasPeer() && entry.operation().peer() >= 0
                            ? OptionalInt.of(entry.operation().peer())
                            : OptionalInt.empty(),
                    entry.operation().stream(),
                    time(entry.enqueued()),
                    time(entry.done()));
        }

        private static Optional<Instant> time(long milliseconds) {
            return milliseconds == 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(milliseconds));
        }
    }

    /** {@return the operations that are kept, the oldest first} */
    public List<Operation> operations() {
        return record.log().entries().stream().map(Operation::of).toList();
    }

    /** {@return the number of operations called so far} */
    public long recorded() {
        return record.log().recorded();
    }

    /**
     * Returns the recorded operations and the description of the communicator.
     *
     * @return JSON, as in a file of {@link #dump}
     */
    public String toJson() {
        return record.toJson();
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
        return FlightRecord.dumpAll(folder);
    }
}
