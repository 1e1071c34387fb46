package io.github.nccl4j.tools.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CapacityTest {
    @TempDir
    Path root;

    private void writeFile(String name, String text) throws IOException {
        Files.createDirectories(root.resolve(name).getParent());
        Files.writeString(root.resolve(name), text);
    }

    @Test
    void memoryIsTheLesserOfMachineAndContainer() throws IOException {
        assertEquals(new Capacity(2, OptionalLong.empty()), Capacity.of(root, 2));
        writeFile("proc/meminfo", "MemTotal:       16 kB\nMemAvailable:       1024 kB\nBuffers: 1 kB\n");
        assertEquals(new Capacity(2, OptionalLong.of(1 << 20)), Capacity.of(root, 2));
        writeFile("sys/fs/cgroup/memory.max", "max\n");
        writeFile("sys/fs/cgroup/memory.current", "4096\n");
        assertEquals(new Capacity(2, OptionalLong.of(1 << 20)), Capacity.of(root, 2));
        writeFile("sys/fs/cgroup/memory.max", "65536\n");
        assertEquals(new Capacity(2, OptionalLong.of(61440)), Capacity.of(root, 2));
    }

    @Test
    void shortageNamesTheLimitAndBothValues() {
        OptionalLong memory = OptionalLong.of(100 * Capacity.BYTES_PER_PROCESS);
        assertEquals(Optional.empty(), new Capacity(2, memory).shortage(100, 1));
        assertEquals(
                Optional.of("101 processes need about 4848 MiB of memory, but only 4800 MiB are available"),
                new Capacity(2, memory).shortage(101, 1));
        assertEquals(Optional.empty(), new Capacity(2, OptionalLong.empty()).shortage(128, 1));
        assertEquals(Optional.empty(), new Capacity(2, memory).shortage(64, 2));
        assertEquals(
                Optional.of("at most 64 ranks per processor are allowed: 129 ranks, 2 processors"),
                new Capacity(2, OptionalLong.empty()).shortage(129, 1));
        assertEquals(
                Optional.of("at most 64 ranks per processor are allowed: 4611686014132420609 ranks, 1 processor"),
                new Capacity(1, memory).shortage(Integer.MAX_VALUE, Integer.MAX_VALUE));
    }

    @Test
    void thisMachineHasCapacityForTwoRanks() {
        assertTrue(Capacity.ofMachine().memory().isPresent());
        assertEquals(Optional.empty(), Capacity.ofMachine().shortage(2, 1));
    }
}
