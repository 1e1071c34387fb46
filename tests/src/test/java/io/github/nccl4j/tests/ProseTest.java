package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** No page, comment or message has a word or sentence of {@code prose.txt}. */
class ProseTest {
    private static final Path ROOT = Path.of("..");

    /** What stands between two words of a sentence that goes over lines: the marks of comments, and a concatenation. */
    private static final Pattern BREAK = Pattern.compile("\"\\s*\\R\\s*\\+ \"|\\s*\\R\\s*(?:\\*(?!/) ?|// ?|# ?)?");

    private record Rule(Pattern pattern, String example, String better) {}

    private static List<Rule> rules() throws IOException {
        String text =
                new String(ProseTest.class.getResourceAsStream("prose.txt").readAllBytes(), StandardCharsets.UTF_8);
        return text.lines()
                .filter(line -> !line.startsWith("#"))
                .map(line -> line.split("\t"))
                .map(parts -> new Rule(Pattern.compile(parts[0], Pattern.CASE_INSENSITIVE), parts[1], parts[2]))
                .toList();
    }

    /** Pages, sources that are no tests, and what builds and checks them. */
    private static List<Path> files() throws IOException {
        List<Path> files = new ArrayList<>(Markdown.pages());
        for (String name : List.of("SECURITY.md", "CODE_OF_CONDUCT.md", "mkdocs.yml", "nccl4j", "pom.xml")) {
            files.add(ROOT.resolve(name));
        }
        for (String folder : List.of(".ci", ".github")) {
            try (Stream<Path> all = Files.walk(ROOT.resolve(folder))) {
                all.filter(Files::isRegularFile)
                        .filter(file -> !file.toString().contains("__pycache__"))
                        .forEach(files::add);
            }
        }
        for (Path module : Modules.all()) {
            try (Stream<Path> own = Files.list(module)) {
                own.filter(Files::isRegularFile)
                        .filter(file -> file.getFileName().toString().matches("pom\\.xml|[^.]+|.*\\.sh"))
                        .forEach(files::add);
            }
            Path sources = module.resolve("src/main");
            if (Files.isDirectory(sources)) {
                try (Stream<Path> all = Files.walk(sources)) {
                    all.filter(file -> file.toString().matches(".*\\.(java|cpp|hpp|h|html|md|py|sh|txt|xml)"))
                            .forEach(files::add);
                }
            }
        }
        return files;
    }

    @Test
    void rulesMatchTheirExamplesAndNotTheBetterSentences() throws IOException {
        for (Rule rule : rules()) {
            assertTrue(rule.pattern().matcher(rule.example()).find(), rule.toString());
            assertTrue(!rule.pattern().matcher(rule.better()).find(), rule.toString());
        }
    }

    @Test
    void noFileHasOneOfThem() throws IOException {
        List<Rule> rules = rules();
        List<Path> files = files();
        List<String> found = new ArrayList<>();
        for (Path file : files) {
            String text = BREAK.matcher(Files.readString(file)).replaceAll(" ");
            for (Rule rule : rules) {
                Matcher match = rule.pattern().matcher(text);
                while (match.find()) {
                    int from = Math.max(0, match.start() - 40);
                    int to = Math.min(text.length(), match.end() + 40);
                    found.add(file + ": '" + text.substring(from, to) + "', better: " + rule.better());
                }
            }
        }
        assertTrue(files.size() > 300, files.size() + " files");
        assertEquals("", String.join("\n", found));
    }
}
