package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.Cxx;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the engine allocates it frees, in a program without a JVM, where each byte counts. */
class HostEngineMemoryTest {
    /** A block of malloc takes 32 at least, and there are 60 rounds. Threads that the C library keeps take some. */
    private static final int TOLERANCE = 1024;

    @TempDir
    Path folder;

    @Test
    void everyCommunicatorGivesBackAllItsMemoryHoweverItEnds() throws IOException {
        Path program = EngineProgram.compile(folder, "memory");
        // Else malloc counts as in use what threads keep for themselves, and 2256 bytes of each arena that
        // it creates when threads allocate at the same time.
        String exactly = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1";
        String told = Cxx.output(List.of("env", exactly, "timeout", "100", program.toString()))
                .strip();
        assertTrue(told.matches("-?\\d+ bytes more"), told);
        assertTrue(Integer.parseInt(told.replaceAll(" .*", "")) <= TOLERANCE, told);
    }

    @Test
    void anAllocationThatFailsIsAnErrorOfTheCallOrTheCommunicator() throws IOException {
        Path program = EngineProgram.compile(folder, "nomemory");
        String told = Cxx.output(List.of("timeout", "100", program.toString())).strip();
        assertEquals("done", told);
    }
}
