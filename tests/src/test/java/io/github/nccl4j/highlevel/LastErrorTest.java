package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.NcclLog.Level;
import io.github.nccl4j.highlevel.NcclLog.Line;
import io.github.nccl4j.highlevel.NcclLog.Warning;
import io.github.nccl4j.internal.failure.LastError;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;

/** Which words of NCCL a failure quotes. Times are in milliseconds; 1 and 2 are communicators. */
class LastErrorTest {
    private final LastError words = new LastError();

    @Test
    void olderTextIsNotQuoted() {
        assertTrue(words.update("rma_socket requires GDRCopy", 100));
        assertFalse(words.update("rma_socket requires GDRCopy", 150));
        assertEquals("", words.quote("rma_socket requires GDRCopy", 900, 200, 1, null));
        assertEquals("", words.quote("rma_socket requires GDRCopy", 900, 200, 1, "ncclAllReduce 3"));
        assertEquals("", words.quote("rma_socket requires GDRCopy", 900, 100, 1, null));
    }

    @Test
    void newerTextIsQuoted() {
        words.update("old", 100);
        // The watchdog saw the text before the failed thread did.
        words.update("Call to connect failed", 300);
        assertEquals("Call to connect failed", words.quote("Call to connect failed", 900, 200, 1, null));
        // No thread has read the text in between.
        assertEquals("another", words.quote("another", 950, 940, 1, null));
    }

    @Test
    void textOfAnotherCommunicatorIsNotQuoted() {
        assertEquals("broken", words.quote("broken", 300, 200, 1, null));
        assertEquals("", words.quote("broken", 310, 200, 2, null));
        assertEquals("broken", words.quote("broken", 320, 200, 1, null));
        String named = "comm 0xabc rank 3: connection refused";
        assertEquals("", words.quote(named, 400, 350, 1, null));
        assertEquals(named, words.quote(named, 400, 350, 0xabc, null));
    }

    /** NCCL writes the same text anew, which cannot be seen. */
    @Test
    void repeatedFailureQuotesTheSameText() {
        assertEquals("invalid root 9", words.quote("invalid root 9", 300, 290, 1, "ncclReduce 4"));
        assertEquals("invalid root 9", words.quote("invalid root 9", 800, 790, 1, "ncclReduce 4"));
        assertEquals("invalid root 9", words.quote("invalid root 9", 900, 890, 2, "ncclReduce 4"));
        assertEquals("", words.quote("invalid root 9", 950, 940, 1, "ncclReduce 6"));
        assertEquals("", words.quote("invalid root 9", 950, 940, 1, null));
    }

    /** The host engine has a text for each thread; a text of NCCL would be that of the other communicator. */
    @Test
    void textsOfTheHostEngineBelongToTheirThread() throws Exception {
        NcclLibrary library = NcclLibrary.get();
        inAThread(() -> assertEquals("broken", LastError.quote(library, "broken", 0, 1, null)));
        inAThread(() -> assertEquals("broken", LastError.quote(library, "broken", 0, 2, null)));
    }

    /** The watchdog has no text of the host engine to look at. */
    @Test
    void watchdogDoesNotObserveTheHostEngine() throws Exception {
        NcclLibrary library = NcclLibrary.get();
        inAThread(() -> {
            assertNotEquals(nccl.ncclSuccess, nccl.ncclCommCount(12345, new int[1]));
            String text = LastError.current(0);
            assertNotEquals("", text);
            LastError.observeProcess();
            long later = System.currentTimeMillis() + 1000;
            assertEquals(text, LastError.quote(library, text, later, 1, null));
        });
        inAThread(() -> {
            nccl.ncclCommCount(12345, new int[1]);
            String text = LastError.current(0);
            LastError.observe(library);
            long later = System.currentTimeMillis() + 1000;
            assertEquals("", LastError.quote(library, text, later, 1, null));
        });
    }

    private static void inAThread(Runnable body) throws Exception {
        Threads.together(List.of(Executors.callable(body)), Duration.ofMinutes(1));
    }

    private static Warning warning(int rank, String communicator, String text, long seen) {
        return new Warning(new Line(Level.WARN, 1, 0, "", text, rank, communicator), seen);
    }

    @Test
    void warningsMatchTimeAndCommunicator() {
        List<Warning> all = List.of(
                warning(0, "train", "too old", 99),
                warning(0, "train", "own", 100),
                warning(0, "other", "of another of this rank", 101),
                warning(1, "train", "of another rank", 102),
                warning(-1, "", "of whom is unknown", 103),
                warning(0, "", "comm 0x1 rank 0: by its handle", 104),
                warning(0, "", "comm 0x2 rank 0: by another handle", 105));
        assertEquals(
                List.of("own", "of whom is unknown", "comm 0x1 rank 0: by its handle"),
                NcclLog.lastOf(all, 0, "train", 1, 100).stream().map(Line::text).toList());
    }
}
