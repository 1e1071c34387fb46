package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SelfTestTest {
    private static final Choice LIBRARY = new Choice("", Map.of("NCCL4J_LIBRARY", "/x", "NCCL4J_ENGINE", ""));
    private static final Duration LIMIT = Duration.ofSeconds(7);

    private final List<String> started = new ArrayList<>();

    private Finding run(String library, int gpus, int code, String output) {
        SelfTest.Ranks ranks = (count, environment, limit, out) -> {
            started.add(count + " " + environment.get("NCCL4J_LIBRARY") + " " + environment.get("NCCL4J_ENGINE"));
            out.print(output);
            return code;
        };
        return new SelfTest(ranks, LIBRARY, TestMachine.probe(library), gpus, LIMIT)
                .run()
                .get(0);
    }

    /** The library and the number of GPUs determine the ranks; the finding names the omitted parts. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "flavor=NCCL | 8 | 2 /x | 2 ranks on GPUs 0 and 1",
                "flavor=NCCL | 1 | 1 /x | 1 rank on the only GPU",
                "flavor=NCCL | 0 | 2  host | without a GPU, 2 ranks on the host engine",
                "flavor=HOST | 0 | 2 /x | 2 ranks on the host engine",
                "error=no | 8 | 2  host | without a usable NCCL, 2 ranks on the host engine"
            })
    void startsRanksThatTheMachineSupports(String library, int gpus, String ranks, String what) {
        Finding finding = run(library.replace('=', '|'), gpus, 0, "[0] # nccl4j 1, engine nccl\n[0] table\n");
        assertEquals(what + ": every element of the all-reduces was right", finding.text());
        assertEquals(List.of("nccl4j 1, engine nccl"), finding.details());
        assertEquals(ranks, started.get(0).strip());
    }

    @Test
    void aFailureComesWithItsLastLines() {
        String lines = String.join(
                "\n", IntStream.range(0, 30).mapToObj(i -> "line " + i).toList());
        Finding finding = run("flavor|NCCL", 2, 139, lines);
        assertEquals("self-test.failed", finding.id());
        assertEquals("2 ranks on GPUs 0 and 1: failed with exit code 139", finding.text());
        assertEquals(20, finding.details().size());
        assertEquals("line 29", finding.details().get(19));
    }

    @Test
    void timeoutIsReported() {
        Finding finding = run("flavor|NCCL", 2, 124, "");
        assertEquals("self-test.late", finding.id());
        assertEquals("2 ranks on GPUs 0 and 1: timed out after 7 s", finding.text());
    }

    @Test
    void ranksThatCannotBeStartedAreAProblem() {
        SelfTest.Ranks broken = (count, environment, limit, out) -> {
            throw new IOException("error=11, Resource temporarily unavailable");
        };
        Finding finding = new SelfTest(broken, LIBRARY, TestMachine.probe("flavor|HOST"), 0, LIMIT)
                .run()
                .get(0);
        assertEquals("self-test.start", finding.id());
    }
}
