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

    private List<Finding> runOnTwoGpus(String version, String... output) {
        SelfTest.Ranks ranks = (count, environment, limit, out) -> {
            started.add(environment.get("NCCL_RUN_DIAGNOSTICS") + " " + environment.get("NCCL_RUN_RAS_DIAGNOSTICS"));
            out.print(String.join("\n", output));
            return 0;
        };
        return new SelfTest(ranks, LIBRARY, TestMachine.probe("flavor|NCCL\nversion|" + version), 2, LIMIT).run();
    }

    /** As the sources of NCCL 2.32 format it. No GPU has printed these lines. */
    private static final String[] DIAGNOSTICS = {
        "[0] node042:12345 NCCL DIAG [OK]   p2p: verified P2P access in both directions between every GPU pair (2 peer accesses)",
        "[0] node042:12345 NCCL DIAG === RAS Diagnostics ===",
        "[0] node042:12345 NCCL DIAG [OK]   GPU inventory: 8x NVIDIA H100 per node consistent across 2 ranks in comm 0x1234",
        "[0] node042:12345 NCCL DIAG [INFO] CUDA driver version: unavailable across 2 ranks in comm 0x1234",
        "[0] node042:12345 NCCL DIAG RAS diagnostics completed in 12.3 ms across 2 ranks",
    };

    @Test
    void theDiagnosticsOfNcclAreToldInTheirWords() {
        Finding finding = runOnTwoGpus("2.32.3", DIAGNOSTICS).get(1);
        assertEquals("diagnostics.passed", finding.id());
        assertEquals(
                List.of(
                        "p2p: verified P2P access in both directions between every GPU pair (2 peer accesses)",
                        "GPU inventory: 8x NVIDIA H100 per node consistent across 2 ranks in comm 0x1234",
                        "CUDA driver version: unavailable across 2 ranks in comm 0x1234"),
                finding.details());
        assertEquals(List.of("1 1"), started);
    }

    @Test
    void whatTheDiagnosticsReportIsAWarning() {
        String[] output = DIAGNOSTICS.clone();
        output[0] =
                "[1] node042:12346 NCCL DIAG [INFO] p2p: destination buffer unavailable srcRank=1 reason=noDescriptor";
        Finding finding = runOnTwoGpus("2.31.2", output).get(1);
        assertEquals("diagnostics.reported", finding.id());
        assertEquals(Finding.Level.WARNING, finding.level());
        assertEquals("NCCL4J-0133", finding.helpId());
        assertEquals(
                "NCCL's own diagnostics report: p2p: destination buffer unavailable srcRank=1 reason=noDescriptor",
                finding.text());
        assertEquals(3, finding.details().size());
    }

    @Test
    void diagnosticsWithoutAResultAreNoProblem() {
        assertEquals(
                "diagnostics.none", runOnTwoGpus("2.32.3", "[0] table").get(1).id());
    }

    @Test
    void olderReleasesHaveNoDiagnostics() {
        assertEquals(1, runOnTwoGpus("2.30.7", DIAGNOSTICS).size());
        assertEquals(List.of("null null"), started);
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
