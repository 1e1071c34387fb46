package io.github.nccl4j.tools;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The samples on the class path, by the list in their jar, and the examples, which have no number. Stateless. */
final class Samples {
    /** Each list is in the package of its classes. */
    private static final List<String> LISTS =
            List.of("/io/github/nccl4j/samples/samples.txt", "/io/github/nccl4j/examples/examples.txt");

    private static final String LAST_RANK_MAY_DIE = "last rank may die";
    private static final String RANKS_COME_BACK = "ranks come back";
    private static final Pattern HEAD =
            Pattern.compile("(?:(\\d\\d)-)?(\\S+) (\\w+)(?: (" + LAST_RANK_MAY_DIE + "|" + RANKS_COME_BACK + "))?");
    private static final Pattern OPTION = Pattern.compile("(-\\S+)(?: (\\S+))?  (.*)");

    private Samples() {}

    /**
     * An option of a sample.
     *
     * @param name its name, such as {@code -c}
     * @param value the name of its value, or null for a flag
     * @param description its description
     */
    record Option(String name, String value, String description) {}

    /**
     * A sample.
     *
     * @param number two digits, or null for an example
     * @param word its name without the number
     * @param className the class with its main method
     * @param summary a description in one line
     * @param options its options
     * @param mayLoseLastRank true if the run continues when the last rank is killed
     * @param takesRanksBack true if ranks that fail can be started again
     */
    record Sample(
            String number,
            String word,
            String className,
            String summary,
            List<Option> options,
            boolean mayLoseLastRank,
            boolean takesRanksBack) {

        /** {@return the name, such as {@code 01-all-reduce}} */
        String name() {
            return number == null ? word : number + "-" + word;
        }

        /** {@return the other names: with and without a leading zero, and without a number} */
        String[] aliases() {
            if (number == null) {
                return new String[0];
            }
            return Stream.of(number, "" + Integer.parseInt(number), word)
                    .distinct()
                    .toArray(String[]::new);
        }
    }

    /**
     * Reads the lists.
     *
     * @return the samples in the order of their numbers, then the examples; none of those whose jar is not on the class path
     */
    static List<Sample> all() {
        List<Sample> samples = new ArrayList<>();
        for (String name : LISTS) {
            try (InputStream list = Samples.class.getResourceAsStream(name)) {
                if (list != null) {
                    String inPackage =
                            name.substring(1, name.lastIndexOf('/') + 1).replace('/', '.');
                    String text = new String(list.readAllBytes(), StandardCharsets.UTF_8);
                    for (String block : text.split("\n\n+")) {
                        if (!block.startsWith("#")) {
                            samples.add(sample(
                                    inPackage, block.lines().map(String::strip).toList()));
                        }
                    }
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return samples;
    }

    private static Sample sample(String inPackage, List<String> lines) {
        Matcher head = match(HEAD, lines.get(0));
        List<Option> options = lines.stream()
                .skip(2)
                .map(line -> match(OPTION, line))
                .map(option -> new Option(option.group(1), option.group(2), option.group(3)))
                .toList();
        return new Sample(
                head.group(1),
                head.group(2),
                inPackage + head.group(3),
                lines.get(1),
                options,
                LAST_RANK_MAY_DIE.equals(head.group(4)),
                RANKS_COME_BACK.equals(head.group(4)));
    }

    private static Matcher match(Pattern pattern, String line) {
        Matcher matcher = pattern.matcher(line);
        if (!matcher.matches()) {
            throw new IllegalStateException("a line of the samples is wrong: " + line);
        }
        return matcher;
    }

    /** {@return the names of all samples, separated by commas} */
    static String names() {
        return String.join(", ", all().stream().map(Sample::name).toList());
    }
}
