package io.github.nccl4j.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The pages of the documentation, and the blocks of code in them. */
final class Markdown {
    private static final Path DOCS = Path.of("../docs");

    private static final Pattern MARK = Pattern.compile("<!-- (\\w+) -->");

    private Markdown() {}

    /**
     * A fenced block.
     *
     * @param file the page
     * @param line the line of its first line of text, from 1
     * @param info the language; then the mark, if the line above is a comment of one word
     * @param text its lines
     */
    record Block(Path file, int line, String info, String text) {
        String place() {
            return file.getFileName() + ":" + line;
        }
    }

    /** The README, CONTRIBUTING and all pages, sorted. */
    static List<Path> pages() throws IOException {
        List<Path> pages = new ArrayList<>(List.of(Path.of("../README.md"), Path.of("../CONTRIBUTING.md")));
        try (Stream<Path> files = Files.walk(DOCS)) {
            files.filter(file -> file.toString().endsWith(".md")).sorted().forEach(pages::add);
        }
        return pages;
    }

    /** The blocks of a page. */
    static List<Block> blocks(Path page) throws IOException {
        List<Block> blocks = new ArrayList<>();
        List<String> lines = Files.readAllLines(page);
        String info = null;
        int start = 0;
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i);
            if (!line.startsWith("```")) {
                continue;
            }
            if (info == null) {
                Matcher mark = MARK.matcher(i > 0 ? lines.get(i - 1) : "");
                info = line.substring(3).strip() + (mark.matches() ? " " + mark.group(1) : "");
                start = i + 1;
            } else {
                String text = String.join("\n", lines.subList(start, i)) + "\n";
                blocks.add(new Block(page, start + 1, info, text));
                info = null;
            }
        }
        if (info != null) {
            throw new AssertionError(page + ": the block of line " + start + " has no end");
        }
        return blocks;
    }
}
