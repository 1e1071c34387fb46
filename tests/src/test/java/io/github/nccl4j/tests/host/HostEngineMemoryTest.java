package io.github.nccl4j.tests.host;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tests.Cxx;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
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

    private String resource(Class<?> neighbour, String name) throws IOException {
        try (InputStream text = neighbour.getResourceAsStream(name)) {
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void everyCommunicatorGivesBackAllItsMemoryHoweverItEnds() throws IOException {
        for (String header : List.of("nccl.h", "nccl4j_host.h")) {
            Files.writeString(folder.resolve(header), resource(nccl.class, "/io/github/nccl4j/include/" + header));
        }
        Path engine = Path.of(NativeLibrary.path());
        Path program = Cxx.program(
                folder,
                "memory",
                resource(HostEngineMemoryTest.class, "memory.cpp"),
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pthread",
                "-I" + folder,
                engine.toString(),
                "-Wl,-rpath," + engine.getParent());
        // Else malloc takes what threads keep for themselves for what is in use.
        String exactly = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0";
        String told = Cxx.output(List.of("env", exactly, "timeout", "100", program.toString()))
                .strip();
        assertTrue(told.matches("-?\\d+ bytes more"), told);
        assertTrue(Integer.parseInt(told.replaceAll(" .*", "")) <= TOLERANCE, told);
    }
}
