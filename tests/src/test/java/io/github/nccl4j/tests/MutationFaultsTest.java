package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The faults of the host engine that {@code ./nccl4j mutate --cxx} plants: each has its place. */
class MutationFaultsTest {
    private static final Path ROOT = Path.of("..");

    @Test
    void eachTextIsInExactlyOneLine() throws IOException {
        List<String> faults = Files.readAllLines(ROOT.resolve("tests/mutation/faults")).stream()
                .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                .toList();
        assertTrue(faults.size() > 90, faults.size() + " faults");
        for (String fault : faults) {
            int file = fault.indexOf(": ");
            String text = fault.substring(file + 2, fault.indexOf(" =>"));
            Path source = ROOT.resolve("nccl-host/src/main/cpp").resolve(fault.substring(0, file));
            long lines = Files.readAllLines(source).stream()
                    .filter(line -> line.contains(text))
                    .count();
            assertEquals(1, lines, fault);
        }
    }
}
