package io.github.nccl4j.tools.support;

import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Properties;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The sections of docs/errors.md as plain text. The build puts the page into the jar. Immutable. */
public final class ErrorsPage {
    private static final Pattern SECTION =
            Pattern.compile("^### (NCCL4J-\\d{4}): `([^`]+)`\n(.*?)(?=^##|\\z)", Pattern.MULTILINE | Pattern.DOTALL);
    private static final Pattern ITEM = Pattern.compile("^(?:\\d+\\. )?");
    private static final Pattern LINK = Pattern.compile("\\[([^]]+)]\\(([^)#]*)(?:#[^)]*)?\\)");
    private static final Pattern NUMBER = Pattern.compile("(?:NCCL4J-)?(\\d{1,4})", Pattern.CASE_INSENSITIVE);
    private static final int NEAREST = 3;

    private static final List<Section> SECTIONS =
            SECTION.matcher(resource("errors.md")).results().map(Section::of).toList();

    private ErrorsPage() {}

    /**
     * The explanation of an exception or a finding.
     *
     * @param id the id, such as {@code NCCL4J-0208}
     * @param subject the name of the exception or the finding, such as {@code rank.missing}
     * @param text the meaning, one paragraph a line
     * @param remedies the things to try, the most likely cause first
     */
    public record Section(String id, String subject, List<String> text, List<String> remedies) {
        private static Section of(MatchResult section) {
            List<String> text = new ArrayList<>();
            List<String> remedies = new ArrayList<>();
            for (String block : section.group(3).strip().split("\n\n|\n(?=\\d+\\. )")) {
                String line = plain(block.strip().replaceAll("\n *", " "));
                String words = ITEM.matcher(line).replaceFirst("");
                (words.equals(line) ? text : remedies).add(words);
            }
            return new Section(section.group(1), section.group(2), List.copyOf(text), List.copyOf(remedies));
        }

        /** {@return the heading} */
        public String heading() {
            return id + ": " + subject;
        }

        /** {@return the paragraphs after the heading, then the remedies with their numbers} */
        public List<String> lines() {
            List<String> lines = new ArrayList<>(text);
            for (int i = 0; i < remedies.size(); i++) {
                lines.add(i + 1 + ". " + remedies.get(i));
            }
            return List.copyOf(lines);
        }

        /**
         * Makes the address of the section in the repository, with an anchor as GitHub and GitLab make it of a heading.
         *
         * @param home the address of the repository
         * @return the address; empty if the project has no home
         */
        public Optional<String> url(String home) {
            String anchor = heading()
                    .toLowerCase(Locale.ROOT)
                    .replaceAll("[^\\w -]", "")
                    .replace(' ', '-');
            return home.startsWith("https://")
                    ? Optional.of(home + "/blob/main/docs/errors.md#" + anchor)
                    : Optional.empty();
        }
    }

    /** {@return all sections, in the order of the page} */
    public static List<Section> sections() {
        return SECTIONS;
    }

    /**
     * Finds a section.
     *
     * @param word its id, the number of that, with or without zeros, or its subject; in upper or lower case
     * @return the section; empty if there is none
     */
    public static Optional<Section> find(String word) {
        Optional<Integer> number = number(word);
        return SECTIONS.stream()
                .filter(section -> number.isPresent()
                        ? number(section.id()).equals(number)
                        : section.subject().equalsIgnoreCase(word))
                .findFirst();
    }

    /**
     * Lists the ids that are next to a number that none has.
     *
     * @param word a word for which there is no section
     * @return the ids in their order; empty if the word is no number
     */
    public static List<String> nearest(String word) {
        return number(word)
                .map(number -> SECTIONS.stream()
                        .map(Section::id)
                        .sorted(Comparator.comparingInt(
                                id -> Math.abs(number(id).orElseThrow() - number)))
                        .limit(NEAREST)
                        .sorted()
                        .toList())
                .orElse(List.of());
    }

    /**
     * Marks a line of a report.
     *
     * @param text the line
     * @param id the id of its finding, or empty
     * @return the line, with the id in brackets at its end
     */
    public static String marked(String text, String id) {
        return id.isEmpty() ? text : text + " [" + id + "]";
    }

    /**
     * Names the command that explains the ids of a report.
     *
     * @param ids the ids, of which some may be empty
     * @return a sentence; empty if there is no id
     */
    public static String command(Stream<String> ids) {
        List<String> numbers = ids.filter(id -> !id.isEmpty())
                .map(id -> id.substring(id.indexOf('-') + 1))
                .distinct()
                .sorted()
                .toList();
        return numbers.isEmpty() ? "" : "nccl4j explain " + String.join(" ", numbers) + " says more.";
    }

    private static Optional<Integer> number(String word) {
        Matcher number = NUMBER.matcher(word);
        return number.matches() ? Optional.of(Integer.valueOf(number.group(1))) : Optional.empty();
    }

    /** Text without marks; a link is its text and the page, relative to the root of the repository. */
    static String plain(String markdown) {
        return LINK.matcher(markdown)
                .replaceAll(link -> Matcher.quoteReplacement(link.group(1) + page(link.group(2))))
                .replace("`", "");
    }

    private static String page(String target) {
        if (target.isEmpty()) {
            return "";
        }
        return " (" + (target.contains("://") ? target : Path.of("docs", target).normalize()) + ")";
    }

    /** {@return the address of the repository, which the build knows; another text if that is not decided} */
    public static String home() {
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(resource("home.properties")));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return properties.getProperty("home", "");
    }

    private static String resource(String name) {
        try (InputStream file = ErrorsPage.class.getResourceAsStream(name)) {
            return new String(file.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
