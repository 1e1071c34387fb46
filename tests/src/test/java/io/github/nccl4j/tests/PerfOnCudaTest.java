package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.tests.ChildJvm.Outcome;
import io.github.nccl4j.tools.Main;
import io.github.nccl4j.tools.SharedClasses;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code nccl4j perf} on a CUDA device, without a GPU. */
class PerfOnCudaTest {
    @TempDir
    Path folder;

    private String perf(String options) throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        FakeCuda cuda = FakeCuda.build(folder);
        ChildJvm jvm = cuda.jvm(new ChildJvm());
        SharedClasses.SINGLE_RANK.forEach(jvm::environment);
        List<String> arguments =
                new ArrayList<>(List.of("perf", "all_reduce", "--engine", "nccl", "--jit-warmup", "0"));
        arguments.addAll(List.of("--library", cuda.ncclThatTakes(3 << 20).toString()));
        arguments.addAll(List.of(options.split(" ")));
        Outcome outcome = jvm.run(Main.class, arguments.toArray(String[]::new));
        assertEquals(0, outcome.exitCode(), outcome::output);
        assertTrue(
                outcome.output().contains("fake CUDA left: 0 allocations, 0 host allocations, 0 streams, 0 events,"),
                outcome::output);
        return outcome.output();
    }

    /** What the communicator takes, two buffers of 8 MiB, and what the first all-reduce takes. */
    @Test
    void eachStepsMemoryIsReported() throws IOException {
        String output = perf("-b 1M -e 8M -f 8 -n 2 -c 0 -M 1");
        assertTrue(
                output.contains("# GPU memory usage     : Initialization 3.00 MB | User-Allocated 16.0 MB |"
                        + " Collective 6.00 MB | Total  25.0 MB"),
                output);
    }

    @Test
    void withoutTheOptionNoMemoryIsReported() throws IOException {
        assertTrue(!perf("-b 8 -e 8 -n 2 -c 0 -p 1 -D 0").contains("GPU memory usage"));
    }

    @Test
    void iterationsAreTimedByEventsOfCuda() throws IOException {
        for (String blocking : List.of("0", "3")) {
            String output = perf("-b 8 -e 8 -n 4 -c 0 -I 1 -K 1 -z " + blocking);
            List<String> rows = output.lines()
                    .filter(line -> line.startsWith("           8 "))
                    .toList();
            assertEquals(1, rows.size(), output);
            String[] columns = rows.get(0).strip().split("\\s+");
            assertEquals(5 + 2 * 8, columns.length, output);
            double least = Double.parseDouble(columns[9]);
            double most = Double.parseDouble(columns[10]);
            assertTrue(least >= 0 && most >= least, output);
        }
    }
}
