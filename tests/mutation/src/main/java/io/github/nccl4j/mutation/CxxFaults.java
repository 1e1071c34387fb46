package io.github.nccl4j.mutation;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The faults of native code, made in the text of its lines. What does not compile is found out by the compiler. */
final class CxxFaults {
    /** Not the headers of NCCL's API, which only declare. */
    private static final List<String> FOLDERS =
            List.of("src/main/cpp", "src/main/native/glue", "src/main/native/portable", "src/main/native/shim");

    private static final Pattern NO_CODE = Pattern.compile(
            "\\s*(//|/?\\*|#|static_assert|using |template|extern |namespace |struct |class |case |$).*");
    private static final Map<Pattern, String> CHANGES = new LinkedHashMap<>();

    static {
        change(" < ", " <= ");
        change(" <= ", " < ");
        change(" > ", " >= ");
        change(" >= ", " > ");
        change(" == ", " != ");
        change(" != ", " == ");
        change(" && ", " || ");
        change(" \\|\\| ", " && ");
        change(" [+-] 1\\b", "");
        change(" \\+ ", " - ");
        change(" - ", " + ");
        change(" \\* (?=[\\w(])", " / ");
        change("\\+\\+", "--");
        change("(?<=[(& ])!(?=[a-z(])", "");
        change("\\btrue\\b", "false");
        change("\\bfalse\\b", "true");
        change("\\bstd::min\\b", "std::max");
        change("\\bstd::max\\b", "std::min");
        change("\\bmemory_order_(acquire|release|acq_rel|seq_cst)\\b", "memory_order_relaxed");
        change("\\b1000+\\b", "1");
        change("\\b(?<![.\\w])[2-9]\\b(?![.\\w])", "1");
        change("\\(([\\w.]+), ([\\w.]+)\\)", "($2, $1)");
        change("^\\s*[a-zA-Z_][\\w.:]*(->\\w+)*\\(.*\\);$", ";");
        change("(?<=^ {2,40})return (?!(nullptr|false|0|ncclSuccess);)[^;]+;$", "return {};");
        change("\\b(break|continue|return);", ";");
    }

    private CxxFaults() {}

    private static void change(String from, String to) {
        CHANGES.put(Pattern.compile(from), to);
    }

    /** Those of a module, in the order of its files. */
    static List<Fault> all(Path root, String module) throws IOException {
        List<Fault> faults = new ArrayList<>();
        for (String folder : FOLDERS) {
            for (Path file : files(root.resolve(module).resolve(folder))) {
                String path = root.relativize(file).toString();
                List<String> lines = Files.readAllLines(file);
                for (int at = 0; at < lines.size(); at++) {
                    String line = lines.get(at);
                    if (!NO_CODE.matcher(line).matches()) {
                        addFaults(faults, path, at, line);
                    }
                }
            }
        }
        return faults;
    }

    private static List<Path> files(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> all = Files.walk(folder)) {
            return all.filter(file -> file.toString().matches(".*\\.(cpp|h)"))
                    .sorted()
                    .toList();
        }
    }

    private static void addFaults(List<Fault> faults, String path, int at, String line) {
        int comment = line.indexOf("//");
        int end = comment < 0 ? line.length() : comment;
        CHANGES.forEach((from, to) -> {
            Matcher matcher = from.matcher(line);
            while (matcher.find()) {
                boolean quoted = line.substring(0, matcher.start())
                                        .chars()
                                        .filter(c -> c == '"')
                                        .count()
                                % 2
                        == 1;
                if (quoted || matcher.end() > end) {
                    continue;
                }
                String changed = line.substring(0, matcher.start())
                        + from.matcher(matcher.group())
                                .replaceFirst(from.pattern().contains("([") ? to : Matcher.quoteReplacement(to))
                        + line.substring(matcher.end());
                // Look-around sees less in the group than in the line.
                if (changed.equals(line)) {
                    changed = line.substring(0, matcher.start()) + to + line.substring(matcher.end());
                }
                String text = changed;
                faults.add(
                        new Fault(path, at + 1, "became: " + text.strip(), copy -> copy.changeNative(path, at, text)));
            }
        });
    }
}
