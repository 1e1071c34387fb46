package io.github.nccl4j.tools.conformance;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** The outcomes of many checks. Each thread has one of its own. */
final class Report {
    private static final int FAILURES_SHOWN = 20;

    private final List<Outcome> outcomes = new ArrayList<>();

    void add(Outcome outcome) {
        outcomes.add(outcome);
    }

    /** Puts the outcomes into a file, for {@link #read} in another process. */
    void write(Path file) throws IOException {
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file)))) {
            out.writeInt(outcomes.size());
            for (Outcome outcome : outcomes) {
                write(out, outcome.subject());
                write(out, outcome.failure());
                write(out, outcome.skipped());
            }
        }
    }

    private static void write(DataOutputStream out, String text) throws IOException {
        byte[] bytes = text == null ? new byte[0] : text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(text == null ? -1 : bytes.length);
        out.write(bytes);
    }

    static Report read(Path file) throws IOException {
        Report report = new Report();
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
            for (int left = in.readInt(); left > 0; left--) {
                report.add(new Outcome(read(in), read(in), read(in)));
            }
        }
        return report;
    }

    private static String read(DataInputStream in) throws IOException {
        int length = in.readInt();
        return length < 0 ? null : new String(in.readNBytes(length), StandardCharsets.UTF_8);
    }

    void addAll(Report other) {
        outcomes.addAll(other.outcomes);
    }

    /** The outcomes of ranks that have run the same checks, as one: a check that failed on one rank has failed. */
    static Report ofRanks(List<Report> ranks) {
        Report merged = new Report();
        int most = ranks.stream().mapToInt(rank -> rank.outcomes.size()).max().orElse(0);
        for (int i = 0; i < most; i++) {
            Outcome outcome = null;
            for (Report rank : ranks) {
                if (i < rank.outcomes.size()) {
                    outcome = outcome == null ? rank.outcomes.get(i) : outcome.and(rank.outcomes.get(i));
                }
            }
            merged.add(outcome);
        }
        return merged;
    }

    /** True if no check has run. */
    boolean isEmpty() {
        return outcomes.isEmpty();
    }

    long passed() {
        return outcomes.size() - failed() - skipped();
    }

    long failed() {
        return outcomes.stream().filter(outcome -> outcome.failure() != null).count();
    }

    long skipped() {
        return outcomes.stream().filter(outcome -> outcome.skipped() != null).count();
    }

    /** The first failures. */
    List<String> failures() {
        return outcomes.stream()
                .filter(outcome -> outcome.failure() != null)
                .map(outcome -> outcome.subject() + ": " + outcome.failure())
                .limit(FAILURES_SHOWN)
                .toList();
    }

    /** A line for each subject, then {@link #printSum}. */
    void print(PrintStream out) {
        Map<String, Report> subjects = new LinkedHashMap<>();
        for (Outcome outcome : outcomes) {
            subjects.computeIfAbsent(outcome.subject(), subject -> new Report()).add(outcome);
        }
        out.printf(Locale.ROOT, "%-48s %8s %8s %8s%n", "", "passed", "failed", "skipped");
        subjects.forEach((subject, report) -> {
            out.printf(Locale.ROOT, "%-48s %8d %8d %8d%n", subject, report.passed(), report.failed(), report.skipped());
            Set<String> reasons = new LinkedHashSet<>();
            report.outcomes.stream()
                    .filter(outcome -> outcome.skipped() != null)
                    .forEach(outcome -> reasons.add(outcome.skipped()));
            reasons.forEach(reason -> out.println("    skipped: " + reason));
        });
        printSum(out);
    }

    /** The failures, then the sum. */
    void printSum(PrintStream out) {
        failures().forEach(failure -> out.println("FAILED " + failure));
        if (failed() > FAILURES_SHOWN) {
            out.println("... " + (failed() - FAILURES_SHOWN) + " more");
        }
        out.println(passed() + " passed, " + failed() + " failed, " + skipped() + " skipped");
    }
}
