package io.github.nccl4j.samples.doctor;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Lets ranks in processes of their own do a real operation, and checks what they computed. */
final class SelfTest implements Check {
    private static final int LINES_OF_FAILURE = 20;

    /** As {@code timeout(1)}. */
    private static final int LATE = 124;

    /** Starts ranks that check an all-reduce. */
    @FunctionalInterface
    interface Ranks {
        /** Returns 0 if all ranks did, else the code of the first that failed, or 124 if they were not done in time. */
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
            return List.of(Finding.ok("self-test.none", "none for RCCL: nccl4j has no access to memory of AMD's GPUs"));
        }
        if (gpus == 0) {
            return List.of(test("without a GPU, 2 ranks on the host engine", 2, Choice.HOST));
        }
        return List.of(
                gpus == 1 ? test("1 rank on the only GPU", 1, choice) : test("2 ranks on GPUs 0 and 1", 2, choice));
    }

    private Finding test(String what, int count, Choice with) {
        Map<String, String> environment = new HashMap<>(with.environment());
        environment.putIfAbsent("NCCL_DEBUG", System.getenv().getOrDefault("NCCL_DEBUG", "WARN"));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        int code;
        try (PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8)) {
            code = ranks.run(count, environment, limit, out);
        } catch (IOException e) {
            return Finding.problem(
                    "self-test.start",
                    what + " could not be started: " + e.getMessage(),
                    "No program with several processes will work here.",
                    "Look at the limit of processes (ulimit -u) and at free memory");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Finding.problem(
                    "self-test.interrupted", what + ": interrupted", "It was not tested.", "Run it again");
        }
        List<String> lines = bytes.toString(StandardCharsets.UTF_8).lines().toList();
        if (code == 0) {
            return Finding.ok("self-test.passed", what + ": every element of the all-reduces was right")
                    .with(lines.stream()
                            .filter(line -> line.startsWith("[0] # nccl4j") || line.contains("NCCL WARN"))
                            .map(line -> line.replaceFirst("^\\[0] # ", ""))
                            .toList());
        }
        List<String> last = lines.subList(Math.max(0, lines.size() - LINES_OF_FAILURE), lines.size());
        return code == LATE
                ? Finding.problem(
                                "self-test.late",
                                what + ": not done in " + limit.toSeconds() + " s",
                                "The ranks wait for each other, or the GPUs do not answer.",
                                "Look at what is said of the network and of /dev/shm; NCCL_DEBUG=INFO tells more")
                        .with(last)
                : Finding.problem(
                                "self-test.failed",
                                what + ": failed with exit code " + code,
                                "Programs will fail in the same way.",
                                "The last lines say why; NCCL_DEBUG=INFO tells more")
                        .with(last);
    }
}
