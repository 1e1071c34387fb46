package io.github.nccl4j.tools.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.tools.oracle.ElementFormat;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/** The same calls on two engines: the codes that they return and the elements of their results. */
final class EngineComparison {
    private static final int EXAMPLES = 4;
    /** Words of a subject that has elements: operation, operator and type. */
    private static final int SUBJECT_WORDS = 3;

    private final RankInfo self;
    private final Duration patience;
    private final ProgressWatch watch;
    private final Predicate<String> wanted;
    private final Path file;

    /**
     * The comparison on one rank.
     *
     * @param file receives the results; a subject of which it has a result already is not run again
     */
    EngineComparison(RankInfo self, Duration patience, ProgressWatch watch, Predicate<String> wanted, Path file) {
        this.self = self;
        this.patience = patience;
        this.watch = watch;
        this.wanted = wanted;
        this.file = file;
    }

    /** Writes the results of this rank. Collective. */
    void run(Device device) throws IOException {
        String engine = NcclLibrary.get().toString().replaceAll(" from .*", "") + ", " + self.worldSize() + " ranks";
        EngineResults results = Files.exists(file) ? EngineResults.read(file) : new EngineResults(engine);
        Rendezvous rendezvous = TcpStore.ofProcess(self, patience).scope("compare-engines");
        // Rank 0 decides for all: if a process was ended from outside, the ranks may have come differently far.
        Set<String> done = Set.of(new String(
                        rendezvous.broadcast(
                                "done",
                                0,
                                () -> String.join("\n", results.bySubject().keySet())
                                        .getBytes(UTF_8),
                                patience),
                        UTF_8)
                .split("\n"));
        Predicate<String> open = wanted.and(subject -> !done.contains(subject));
        watch.at("creating the communicator");
        UniqueId id = UniqueId.of(
                rendezvous.broadcast("id", 0, () -> UniqueId.create().toBytes(), patience));
        try (Communicator communicator =
                Communicator.builder().device(device).create(id, rendezvous.rank(), rendezvous.size())) {
            watch.at("special values");
            new SpecialValues(communicator).run(results, open);
        }
        watch.done();
        results.write(file);
        CallScenarios scenarios = new CallScenarios(rendezvous, patience, device);
        for (String subject : scenarios.subjects()) {
            if (open.test(subject)) {
                watch.at(subject);
                // Stays in the file if this process has to be ended.
                results.put(subject, EngineResults.NO_RETURN);
                results.write(file);
                scenarios.run(subject, codes -> results.put(subject, codes));
                watch.done();
            }
        }
        results.write(file);
    }

    /**
     * The subjects in which two engines differ, each with a text for the user. A subject that only one of them has, such as a
     * call that an older release lacks, is no difference.
     */
    static Map<String, String> differences(EngineResults one, EngineResults other, int ranks) {
        Map<String, String> differences = new LinkedHashMap<>();
        one.bySubject().forEach((subject, result) -> {
            String otherResult = other.bySubject().get(subject);
            if (otherResult != null && !otherResult.equals(result)) {
                differences.put(subject, explain(subject, result, otherResult, ranks));
            }
        });
        return differences;
    }

    private static String explain(String subject, String one, String other, int ranks) {
        String[] words = subject.split(" ");
        boolean hasElements = words.length == SUBJECT_WORDS && words[0].equals(SpecialValues.ALL_REDUCE);
        if (!hasElements || (one + other).contains("[")) {
            return one + " | " + other;
        }
        ElementFormat format = ElementFormat.valueOf(words[SUBJECT_WORDS - 1]);
        String[] ones = one.split(" ");
        String[] others = other.split(" ");
        List<String> examples = new ArrayList<>();
        int count = 0;
        for (int i = 0; i < Math.min(ones.length, others.length); i++) {
            if (!ones[i].equals(others[i]) && count++ < EXAMPLES) {
                examples.add(SpecialValues.explain(format, ranks, i, ones[i], others[i]));
            }
        }
        return count + " of " + ones.length + " elements; " + String.join("; ", examples);
    }

    /** Prints the differences and their number. */
    static void print(EngineResults one, EngineResults other, Map<String, String> differences, PrintStream out) {
        out.println("left: " + one.engine() + "; right: " + other.engine());
        differences.forEach((subject, text) -> out.println(subject + ": " + text));
        out.println(one.bySubject().size() + " compared, " + differences.size() + " differ");
    }
}
