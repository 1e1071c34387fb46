package io.github.nccl4j.tools.conformance;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * The results of one engine by subject, such as "ALL_REDUCE AVG INT8", as text, which a file can keep. Not thread-safe.
 */
final class EngineResults {
    /** The result of calls that hang, or that end the process. */
    static final String NO_RETURN = "does not return";

    private static final String COMMENT = "#";
    private static final String SEPARATOR = "\t";

    private final Map<String, String> bySubject = new LinkedHashMap<>();
    private String engine;

    EngineResults(String engine) {
        this.engine = engine;
    }

    void put(String subject, String result) {
        bySubject.put(subject, result);
    }

    /** The number of scenarios that did not return. */
    long unreturned() {
        return bySubject.values().stream().filter(NO_RETURN::equals).count();
    }

    /** The engine and its release. */
    String engine() {
        return engine;
    }

    Map<String, String> bySubject() {
        return bySubject;
    }

    void write(Path file) throws IOException {
        List<String> lines = new ArrayList<>();
        lines.add(COMMENT + " " + engine);
        bySubject.forEach((subject, result) -> lines.add(subject + SEPARATOR + result));
        Files.write(file, lines, StandardCharsets.UTF_8);
    }

    static EngineResults read(Path file) throws IOException {
        EngineResults results = new EngineResults(file.toString());
        for (String line : Files.readAllLines(file, StandardCharsets.UTF_8)) {
            int end = line.indexOf(SEPARATOR);
            if (line.startsWith(COMMENT)) {
                results.engine = line.substring(COMMENT.length()).strip();
            } else if (end > 0) {
                results.put(line.substring(0, end), line.substring(end + SEPARATOR.length()));
            } else {
                throw new IOException(file + " has a line without a tab: " + line);
            }
        }
        return results;
    }

    /** The results of all ranks, "[rank] result" after each other unless they are equal. */
    static EngineResults ofRanks(List<EngineResults> ranks) {
        EngineResults merged = new EngineResults(ranks.get(0).engine);
        for (String subject : ranks.get(0).bySubject.keySet()) {
            List<String> all =
                    ranks.stream().map(rank -> rank.bySubject.get(subject)).toList();
            if (new TreeSet<>(all.stream().map(String::valueOf).toList()).size() == 1) {
                merged.put(subject, all.get(0));
                continue;
            }
            StringBuilder text = new StringBuilder();
            for (int rank = 0; rank < all.size(); rank++) {
                text.append(rank == 0 ? "" : " ")
                        .append('[')
                        .append(rank)
                        .append("] ")
                        .append(all.get(rank));
            }
            merged.put(subject, text.toString());
        }
        return merged;
    }
}
