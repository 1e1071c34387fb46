package io.github.nccl4j.tools.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.Ports;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tools.Main;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The host engine beside results of NCCL that were recorded on a GPU: docs/host-engine-internals.md lists all differences. */
class EngineComparisonTest {
    private static final Path PAGE = Path.of("../docs/host-engine-internals.md");
    private static final String TABLE = "| calls | NCCL | host engine |";
    private static final Pattern PATTERN = Pattern.compile("`([^`]+)`");

    private static Path recording() throws URISyntaxException {
        return Path.of(EngineComparisonTest.class
                .getResource("nccl-2.32.3-2-ranks.txt")
                .toURI());
    }

    /** The subjects of the page's table, where "*" stands for any text. */
    private static List<Pattern> listed() throws IOException {
        List<Pattern> patterns = new ArrayList<>();
        List<String> lines = Files.readAllLines(PAGE);
        for (String row : lines.subList(lines.indexOf(TABLE) + 2, lines.size())) {
            if (!row.startsWith("|")) {
                break;
            }
            Matcher names = PATTERN.matcher(row.split("\\|")[1]);
            while (names.find()) {
                patterns.add(Pattern.compile(Pattern.quote(names.group(1)).replace("*", "\\E.*\\Q")));
            }
        }
        return patterns;
    }

    @Test
    void everyDifferenceIsListedAndEveryListedOneIsThere() throws Exception {
        ChildJvm.Outcome outcome = new ChildJvm()
                .limit(Duration.ofMinutes(3))
                .run(
                        Main.class,
                        "conformance",
                        "-n",
                        "2",
                        ChildJvm.QUICK_RANKS,
                        "--compare-engines",
                        "--recorded",
                        recording().toString());
        assertEquals(1, outcome.exitCode(), outcome.output());
        Matcher sum = Pattern.compile("(?m)^(\\d+) compared, (\\d+) differ$").matcher(outcome.output());
        assertTrue(sum.find(), outcome.output());
        assertTrue(Integer.parseInt(sum.group(1)) > 300, sum.group());
        TreeSet<String> subjects =
                new TreeSet<>(EngineResults.read(recording()).bySubject().keySet());
        List<String> differing = outcome.output()
                .lines()
                .flatMap(line -> subjects.stream().filter(subject -> line.startsWith(subject + ": ")))
                .toList();
        assertEquals(Integer.parseInt(sum.group(2)), differing.size(), outcome.output());
        List<Pattern> listed = listed();
        assertEquals(
                List.of(),
                differing.stream()
                        .filter(subject -> listed.stream()
                                .noneMatch(pattern -> pattern.matcher(subject).matches()))
                        .toList(),
                "differences that the page does not list");
        assertEquals(
                List.of(),
                listed.stream()
                        .filter(pattern -> differing.stream()
                                .noneMatch(subject -> pattern.matcher(subject).matches()))
                        .map(Pattern::pattern)
                        .toList(),
                "listed differences that are gone");
    }

    /** The ranks that start after some that had to be ended run what is wanted and was not run before. */
    @Test
    void aRankRunsWhatIsWantedAndHasNoResultYet(@TempDir Path folder) throws IOException {
        Path results = Files.writeString(folder.resolve("rank0"), "# before\nGetVersion: null\tkept\n");
        ChildJvm jvm = new ChildJvm();
        Map.of("RANK", "0", "WORLD_SIZE", "1", "MASTER_ADDR", "127.0.0.1", "MASTER_PORT", "" + Ports.free())
                .forEach(jvm::environment);
        ChildJvm.Outcome outcome = jvm.property("nccl4j.engine", "host")
                .property("nccl4j.conformance.reports", folder)
                .run(Main.class, "conformance", "--compare-engines", "--only", "^Get(Version|UniqueId): null");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertEquals(
                Map.of("GetVersion: null", "kept", "GetUniqueId: null", "ncclInvalidArgument"),
                EngineResults.read(results).bySubject());
    }

    @Test
    void differencesNameTheInputs() {
        EngineResults one = new EngineResults("one");
        EngineResults other = new EngineResults("other");
        one.put("ALL_REDUCE SUM INT8", "0 1 2");
        other.put("ALL_REDUCE SUM INT8", "0 1 ff");
        one.put("GetVersion: null", "ncclSuccess");
        other.put("GetVersion: null", "ncclInvalidArgument");
        one.put("only here", "ncclSuccess");
        one.put("equal", "a");
        other.put("equal", "a");
        assertEquals(
                Map.of(
                        "ALL_REDUCE SUM INT8",
                        "1 of 3 elements; of 2, 0: 2, -1",
                        "GetVersion: null",
                        "ncclSuccess | ncclInvalidArgument"),
                EngineComparison.differences(one, other, 2));
    }

    @Test
    void ranksThatDifferAreTold() {
        EngineResults one = new EngineResults("engine");
        EngineResults other = new EngineResults("engine");
        one.put("call", "ncclSuccess");
        other.put("call", "ncclInvalidUsage");
        one.put("equal", "ncclSuccess");
        other.put("equal", "ncclSuccess");
        assertEquals(
                Map.of("call", "[0] ncclSuccess [1] ncclInvalidUsage", "equal", "ncclSuccess"),
                EngineResults.ofRanks(List.of(one, other)).bySubject());
        assertEquals(one.bySubject(), EngineResults.ofRanks(List.of(one)).bySubject());
    }
}
