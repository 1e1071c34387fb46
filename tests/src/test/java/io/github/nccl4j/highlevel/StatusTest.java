package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.failure.FailureReport;
import io.github.nccl4j.internal.failure.LastError;
import io.github.nccl4j.internal.failure.Status;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Results become exceptions, on the host engine. */
class StatusTest {
    @Test
    void successIsNoException() {
        Status.check(nccl.ncclSuccess, "ncclGetVersion");
        Status.check(nccl.ncclSuccess, "ncclCommCount", 0, "train", 0);
        assertTrue(Status.isFinished(nccl.ncclSuccess, "ncclCommSplit", 0, "", 0));
    }

    @Test
    void inProgressIsNeverSuccess() {
        assertFalse(Status.isFinished(nccl.ncclInProgress, "ncclCommSplit", 0, "", 0));
        NcclResultException e = assertThrows(
                NcclResultException.class, () -> Status.check(nccl.ncclInProgress, "ncclCommSplit", 0, "", 0));
        assertEquals(Result.IN_PROGRESS, e.result());
        e = assertThrows(NcclResultException.class, () -> Status.check(nccl.ncclInProgress, "ncclGroupEnd"));
        assertEquals(Result.IN_PROGRESS, e.result());
    }

    @Test
    void exceptionHasAllProperties() {
        int result = nccl.ncclCommCount(0L, new int[1]);
        NcclUsageException e =
                assertThrows(NcclUsageException.class, () -> Status.isFinished(result, "ncclCommCount", 3, "train", 0));
        NcclLibrary library = NcclLibrary.get();
        assertEquals(Result.INVALID_ARGUMENT, e.result());
        assertEquals("ncclCommCount", e.operation());
        assertEquals(3, e.rank());
        assertEquals("train", e.communicatorName());
        assertEquals(library.path(), e.libraryPath());
        assertEquals(library.version(), e.libraryVersion());
        assertFalse(e.lastError().isEmpty());
        assertEquals(
                "ncclCommCount failed at rank 3 of communicator 'train': ncclInvalidArgument (4), an argument has a wrong"
                        + " value. NCCL says: " + e.lastError() + " [" + library + "]\n"
                        + Result.INVALID_ARGUMENT.advice(),
                e.getMessage());
    }

    @Test
    void exceptionsTravelBetweenProcesses() throws IOException, ClassNotFoundException {
        NcclResultException e = Status.failure(1234, "ncclAllReduce", 1, "train", 0);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(e);
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            NcclResultException copy = (NcclResultException) in.readObject();
            assertEquals(e.getMessage(), copy.getMessage());
            assertEquals(e.result(), copy.result());
            assertEquals(e.libraryPath(), copy.libraryPath());
            assertEquals(e.libraryVersion(), copy.libraryVersion());
        }
    }

    private static NcclLog.Line warning(String text) {
        return new NcclLog.Line(NcclLog.Level.WARN, 4711, 0, "init.cc:1", text, -1, "");
    }

    @Test
    void timeoutNamesLimitAndSilentRanks() {
        NcclLibrary library = NcclLibrary.get();
        LastError.Messages messages =
                new LastError.Messages("connection closed", List.of(warning("connection closed"), warning("no route")));
        NcclResultException e = new FailureReport("ncclAllReduce", library)
                .of("allReduce of 3 floats")
                .at(1, "train")
                .messages(messages)
                .ranks("Rank 2 is slow")
                .tail("Rank 2 is silent.")
                .silent(List.of(2))
                .timedOut(Duration.ofSeconds(2));
        assertEquals(List.of(2), assertInstanceOf(NcclTimeoutException.class, e).silentRanks());
        assertEquals(
                "Timed out after 2 s in allReduce of 3 floats at rank 1 of communicator 'train'. Rank 2 is slow. NCCL says: connection closed ["
                        + library + "]\n"
                        + Result.TIMEOUT.advice() + "\nNCCL warned: "
                        + messages.warnings().get(1) + "\nRank 2 is silent.",
                e.getMessage());
        assertEquals("ncclAllReduce", e.operation());
        assertEquals(messages.warnings(), e.warnings());
        NcclResultException plain =
                new FailureReport("ncclAllReduce", library).of("allReduce").timedOut(Duration.ofSeconds(2));
        assertEquals(
                List.of(), assertInstanceOf(NcclTimeoutException.class, plain).silentRanks());
        assertEquals(List.of(), plain.warnings());
        assertEquals(
                "Timed out after 2 s in allReduce. [" + library + "]\n" + Result.TIMEOUT.advice(), plain.getMessage());
    }

    @Test
    void resultsOfDifferentCodesHaveDifferentHashes() {
        assertEquals(
                Result.known().size(),
                Result.known().stream().map(Result::hashCode).distinct().count());
    }
}
