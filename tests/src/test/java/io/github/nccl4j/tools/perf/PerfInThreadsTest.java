package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.launch.TcpStore;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** {@code nccl4j perf} on the host engine, all ranks in this process. */
@Timeout(600)
class PerfInThreadsTest {
    private record Outcome(int code, List<String> lines) {
        List<String> rows() {
            return lines.stream().filter(line -> !line.startsWith("#")).toList();
        }
    }

    /** Runs the command in this process, which is the only one of its job. */
    private static Outcome run(String arguments) {
        StringWriter out = new StringWriter();
        // As if a launcher had chosen the engine, which is that of this JVM.
        Map<String, String> rank = Map.of("nccl4j.rank", "0", "nccl4j.worldSize", "1", "nccl4j.launcher", "this test");
        rank.forEach(System::setProperty);
        List<TcpStore> stores = new ArrayList<>();
        PerfCommand perf = new PerfCommand((self, patience) -> {
            stores.add(TcpStore.builder().timeout(patience).open(self));
            return stores.get(0);
        });
        try {
            CommandLine command = new CommandLine(perf).setOut(new PrintWriter(out));
            int code = command.execute(arguments.split(" "));
            return new Outcome(code, out.toString().lines().toList());
        } finally {
            rank.keySet().forEach(System::clearProperty);
            stores.forEach(TcpStore::close);
        }
    }

    /** Counts the rows, and asserts that each has 13 columns and no wrong elements. */
    private static void assertMeasured(String arguments, int rows, Outcome outcome) {
        String text = String.join("\n", outcome.lines());
        assertEquals(0, outcome.code(), text);
        assertEquals(rows, outcome.rows().size(), text);
        assertTrue(outcome.lines().contains("# Out of bounds values : 0 OK"), text);
        for (String row : outcome.rows()) {
            // The column of the reduction is empty for hypercube.
            String[] columns = row.strip().split("\\s+");
            int first = arguments.startsWith("hypercube") ? 4 : 5;
            assertEquals("0", columns[first + 3], text);
            assertTrue(Double.parseDouble(columns[first]) > 0, text);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "all_reduce -t 2 -g 2 -b 1K -e 1K -n 2 -d all -o all -m 3 | 72",
                "reduce_scatter -t 3 -b 1K -e 3K -i 1K -n 2 -o mulsum -d f8e5m2 --api raw -z 1 | 3",
                "all_reduce -t 2 -b 1K -e 1K -n 2 -m 2 --algo tree,ring | 1",
                "all_reduce -t 2 -b 1K -e 1K -n 2 -m 2 -o all --algo tree --api raw | 6",
                "reduce_scatter -t 2 -b 1K -e 1K -n 2 --algo ring --api raw | 1",
                "reduce -g 2 -b 1K -e 1K -n 2 -r -1 --algo ring | 2",
                "broadcast -t 2 -b 1K -e 1K -n 2 --algo ring | 1",
                "all_gather -t 2 -b 1K -e 1K -n 2 --algo ring | 1",
                "reduce_scatter -t 2 -b 1K -e 1K -n 2 -o max --algo ring | 1",
                "reduce -t 2 -b 1K -e 1K -n 2 --algo ring --api raw | 1",
                "broadcast -t 2 -b 1K -e 1K -n 2 --algo ring --api raw | 1",
                "all_gather -t 2 -b 1K -e 1K -n 2 --algo ring --api raw | 1",
                "broadcast -g 3 -b 1K -e 1K -n 2 -N 2 --api raw -z 2 -d bfloat16 | 2",
                "all_gather -t 3 -b 1M -e 1M -n 2 -R 2 -o sum | 1",
                "gather -t 3 -b 1K -e 1K -n 2 -R 1 -z 3 | 1",
                "scatter -t 2 -g 2 -b 1K -e 1K -n 2 -r 2 --api raw | 1",
                "alltoall -g 3 -b 1K -e 1K -n 2 -C 1 | 1",
                "alltoallv -t 3 -b 64K -e 64K -n 2 --api raw -S 1 | 1",
                "sendrecv_perf -t 3 -b 1K -e 1K -n 2 -w 0 | 1",
                "hypercube -t 2 -b 1K -e 1K -n 2 --api raw | 1",
                "all_gather -t 3 -b 1K -e 1K -n 3 -m 2 -I 1 -K 2 -y 1 --api raw | 1",
            })
    void measuresWithoutWrongElements(String arguments, int rows) {
        assertMeasured(arguments, rows, run(arguments + " --jit-warmup 0"));
    }
}
