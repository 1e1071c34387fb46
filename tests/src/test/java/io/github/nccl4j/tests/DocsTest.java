package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tests.Markdown.Block;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The pages say what is so: their Java compiles and runs, their links lead somewhere. Commands: {@code DocsCommandsTest}. */
class DocsTest {
    private static final Set<String> LANGUAGES = Set.of(
            "kotlin",
            "kotlin gradle",
            "scala",
            "java",
            "java jdk22",
            "java interop",
            "java micrometer",
            "java pytorch",
            "java spark",
            "java zookeeper",
            "xml",
            "yaml",
            "text",
            "sh",
            "sh gate",
            "sh gpu",
            "sh cluster",
            "python cluster",
            "sh install",
            "sh maintainer",
            "sh checkout",
            "diff change",
            "sh example");

    private static final Pattern PROGRAM = Pattern.compile("public class (\\w+)");
    private static final int MOST_WORDS = 1500;
    private static final Pattern ANCHOR = Pattern.compile("<a id=\"([^\"]+)\"></a>");
    private static final Pattern LINK = Pattern.compile("]\\(([^)#\\s]+)(?:#([^)]*))?\\)");

    /** What pages use besides: other packages, and a tensor that comes from somewhere. */
    private static final String PRELUDE = """
            import io.github.nccl4j.extensions.*;
            import io.github.nccl4j.extensions.global.*;
            import io.github.nccl4j.extensions.library.*;
            import io.github.nccl4j.extensions.nccl_m2n.*;
            import io.github.nccl4j.global.nccl;
            import io.github.nccl4j.launch.*;
            import io.github.nccl4j.nccl.*;
            import org.bytedeco.javacpp.*;
            """
            + Snippets.HIGHLEVEL.replace(
                    "abstract <T> T receiveFromRank0();",
                    "abstract <T> T receiveFromRank0();" + " abstract long nextTensor();");

    private static final String PRELUDE_22 = "import java.lang.foreign.*;\nimport java.nio.ByteOrder;\n" + PRELUDE;

    @TempDir
    Path folder;

    /** All blocks of a language, of which there are some. */
    private static List<Block> blocks(String language) throws IOException {
        List<Block> blocks = new ArrayList<>();
        for (Path page : Markdown.pages()) {
            Markdown.blocks(page).stream()
                    .filter(block -> block.info().equals(language))
                    .forEach(blocks::add);
        }
        assertFalse(blocks.isEmpty(), language);
        return blocks;
    }

    @Test
    void everyBlockHasALanguageAndAKnownMark() throws IOException {
        for (Path page : Markdown.pages()) {
            for (Block block : Markdown.blocks(page)) {
                assertTrue(LANGUAGES.contains(block.info()), block.place() + ": '" + block.info() + "'");
            }
        }
    }

    /** CONTRIBUTING.md tells what each module is for, and a newcomer sees few folders. */
    @Test
    void theTableOfModulesIsComplete() throws IOException {
        Set<Path> told = Pattern.compile("(?m)^\\| `([^`]+)` \\|")
                .matcher(Files.readString(Path.of("../CONTRIBUTING.md")).split("## Where things are")[1])
                .results()
                .map(row -> Path.of("..", row.group(1)))
                .collect(Collectors.toSet());
        assertEquals(Set.copyOf(Modules.all()), told);
        // And docs.
        assertTrue(Modules.all().stream()
                        .map(module -> module.getName(1))
                        .distinct()
                        .count()
                <= 11);
    }

    @Test
    void everySnippetCompiles() throws IOException {
        Snippets snippets = new Snippets();
        for (Block block : blocks("java")) {
            Matcher program = PROGRAM.matcher(block.text());
            if (program.find()) {
                snippets.addClass(program.group(1), block.file(), block.line(), block.text());
            } else {
                snippets.addBody(PRELUDE, block.file(), block.line(), block.text());
            }
        }
        if (Runtime.version().feature() >= 22) {
            blocks("java jdk22")
                    .forEach(block -> snippets.addBody(PRELUDE_22, block.file(), block.line(), block.text()));
        }
        assertEquals("", snippets.errors(folder));
    }

    /** A program whose next block is text prints that, on the host engine. */
    @Test
    void programsPrintWhatThePageSays() throws IOException {
        int programs = 0;
        for (Path page : Markdown.pages()) {
            List<Block> blocks = Markdown.blocks(page);
            for (int i = 0; i + 1 < blocks.size(); i++) {
                Matcher program = PROGRAM.matcher(blocks.get(i).text());
                if (program.find() && blocks.get(i + 1).info().equals("text")) {
                    Path source = Files.writeString(
                            folder.resolve(program.group(1) + ".java"),
                            blocks.get(i).text());
                    ChildJvm.Outcome outcome = new ChildJvm()
                            .property("nccl4j.engine", "host")
                            .start(source.toString())
                            .await();
                    assertEquals(
                            blocks.get(i + 1).text(),
                            outcome.output(),
                            blocks.get(i).place());
                    programs++;
                }
            }
        }
        assertTrue(programs >= 2, programs + " programs");
    }

    @Test
    void linksLeadToFilesAndHeadings() throws IOException {
        int files = 0;
        int headings = 0;
        for (Path page : Markdown.pages()) {
            for (MatchResult link :
                    LINK.matcher(Files.readString(page)).results().toList()) {
                if (link.group(1).matches("https?:.*")) {
                    continue;
                }
                files++;
                Path target = page.resolveSibling(link.group(1)).normalize();
                assertTrue(Files.exists(target), page + ": " + link.group());
                if (link.group(2) != null) {
                    headings++;
                    assertTrue(headings(target).contains(link.group(2)), page + ": " + link.group());
                }
            }
        }
        assertTrue(files > headings && headings > 0, files + " links to files, " + headings + " of them to headings");
    }

    /** Pages that answer one question each: one that grows over this is to be split again. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "performance/README.md",
                "cluster.md",
                "launchers.md",
                "lost-ranks.md",
                "zookeeper.md",
                "encryption.md",
                "gpu-setup.md",
                "host-engine.md",
                "between-hosts.md",
                "host-engine-internals.md",
                "status.md"
            })
    void pagesThatWereSplitStayShort(String page) throws IOException {
        int words = Files.readString(Path.of("../docs", page)).split("\\s+").length;
        assertTrue(words <= MOST_WORDS, words + " words");
    }

    /** The site shows 100 characters beside its contents at 1280 px. LightGBM's program is a source file, formatted as such. */
    @Test
    void programsFitTheSite() throws IOException {
        for (Path page : Markdown.pages()) {
            for (Block block : Markdown.blocks(page)) {
                if (block.info().matches("(java|scala|kotlin|python).*")
                        && !block.text().contains("class LightGbmNetwork")) {
                    block.text().lines().forEach(line -> assertTrue(line.length() <= 100, block.place() + ": " + line));
                }
            }
        }
    }

    /** As GitHub names them, and the anchors of sections that moved to another page. */
    private static List<String> headings(Path page) throws IOException {
        List<String> names = ANCHOR.matcher(Files.readString(page))
                .results()
                .map(anchor -> anchor.group(1))
                .collect(Collectors.toCollection(ArrayList::new));
        Files.readAllLines(page).stream()
                .filter(line -> line.startsWith("#"))
                .map(line ->
                        line.replaceFirst("^#+ ", "").toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9 -]", ""))
                .map(line -> line.replace(' ', '-'))
                .forEach(names::add);
        return names;
    }
}
