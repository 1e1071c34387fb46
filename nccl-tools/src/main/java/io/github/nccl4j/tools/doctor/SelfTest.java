package io.github.nccl4j.tools.doctor;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Runs an all-reduce on ranks in child processes, which check every element. */
final class SelfTest implements Check {
    private static final int MAX_OUTPUT_LINES = 20;

    /** The exit code after a timeout, as that of {@code timeout(1)}. */
    private static final int TIMED_OUT = 124;

    /** Starts ranks that run and check an all-reduce. */
    @FunctionalInterface
    interface Ranks {
        /** Returns 0 if all ranks succeeded, the exit code of the first rank that failed, or 124 after the time limit. */
        int run(int count, Map<String, String> environment, Duration limit, PrintStream out)
                throws IOException, InterruptedException;
    }

    private final Ranks ranks;
    private final Choice choice;
    private final ProbeAnswer library;
    private final int gpus;
    private final Duration limit;

    SelfTest(Ranks ranks, Choice choice, ProbeAnswer library, int gpus, Duration limit) {
        this.ranks = ranks;
        this.choice = choice;
        this.library = library;
        this.gpus = gpus;
        this.limit = limit;
    }

    @Override
    public String name() {
        return "self test";
    }

    @Override
    public List<Finding> run() {
        String flavor = library.first("flavor");
        if (flavor.equals("HOST")) {
            return List.of(test("2 ranks on the host engine", 2, choice));
        }
        if (!library.death().isEmpty() || flavor.isEmpty()) {
            return List.of(test("without a usable NCCL, 2 ranks on the host engine", 2, Choice.HOST));
        }
        if (flavor.equals("RCCL")) {
            return List.of(
                    Finding.ok("self-test.none", "skipped for RCCL: nccl4j has no access to the memory of AMD GPUs"));
        }
        if (gpus == 0) {
            return List.of(test("without a GPU, 2 ranks on the host engine", 2, Choice.HOST));
        }
        return onGpus(flavor, library.first("version"));
    }

    /** Also runs the library's own diagnostics. */
    private List<Finding> onGpus(String flavor, String version) {
        List<String> lines = new ArrayList<>();
        Map<String, String> diagnostics = Diagnostics.environment(flavor, version);
        List<Finding> findings = new ArrayList<>();
        findings.add(
                gpus == 1
                        ? test("1 rank on the only GPU", 1, choice, diagnostics, lines)
                        : test("2 ranks on GPUs 0 and 1", 2, choice, diagnostics, lines));
        Diagnostics.finding(flavor, version, lines).ifPresent(findings::add);
        return findings;
    }

    private Finding test(String description, int count, Choice library) {
        return test(description, count, library, Map.of(), new ArrayList<>());
    }

    /** Adds the output of the ranks to {@code lines}. */
    private Finding test(
            String description, int count, Choice library, Map<String, String> additional, List<String> lines) {
        Map<String, String> environment = new HashMap<>(library.environment());
        additional.forEach(environment::putIfAbsent);
        environment.putIfAbsent("NCCL_DEBUG", System.getenv().getOrDefault("NCCL_DEBUG", "WARN"));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        int code;
        try (PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8)) {
            code = ranks.run(count, environment, limit, out);
        } catch (IOException e) {
            return Finding.problem(
                    "self-test.start",
                    description + " could not be started: " + e.getMessage(),
                    "No program with several processes will work here.",
                    "Check the limit of processes (ulimit -u) and the free memory");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Finding.problem(
                    "self-test.interrupted", description + ": interrupted", "The test did not end.", "Run it again");
        }
        lines.addAll(bytes.toString(StandardCharsets.UTF_8).lines().toList());
        if (code == 0) {
            return Finding.ok("self-test.passed", description + ": every element of the all-reduces was right")
                    .with(lines.stream()
                            .filter(line -> line.startsWith("[0] # nccl4j") || line.contains("NCCL WARN"))
                            .map(line -> line.replaceFirst("^\\[0] # ", ""))
                            .toList());
        }
        List<String> last = lines.subList(Math.max(0, lines.size() - MAX_OUTPUT_LINES), lines.size());
        return code == TIMED_OUT
                ? Finding.problem(
                                "self-test.late",
                                description + ": timed out after " + limit.toSeconds() + " s",
                                "The ranks wait for each other, or the GPUs do not respond.",
                                "Check the findings on the network and /dev/shm; NCCL_DEBUG=INFO prints more")
                        .with(last)
                : Finding.problem(
                                "self-test.failed",
                                description + ": failed with exit code " + code,
                                "Programs will fail in the same way.",
                                "See the last lines for the reason; NCCL_DEBUG=INFO prints more")
                        .with(last);
    }
}
