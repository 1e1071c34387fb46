package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import io.github.nccl4j.highlevel.Incubating;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What docs/compatibility.md says about the public API. The build itself compares the API with its record. */
class CompatibilityTest {
    private static final Path PAGE = Path.of("../docs/compatibility.md");

    /** The folders of the written packages that programs may use. */
    private static final List<Path> PACKAGES = List.of(
            Path.of("../nccl-presets/src/main/java/io/github/nccl4j/highlevel"),
            Path.of("../nccl-presets/src/main/java/io/github/nccl4j/launch"),
            Path.of("../nccl-presets/src/main/java/io/github/nccl4j/library"),
            Path.of("../nccl-presets/src/main/java/io/github/nccl4j/presets"),
            Path.of("../nccl-extensions/src/main/java/io/github/nccl4j/extensions"),
            Path.of("../nccl-extensions/src/main/java/io/github/nccl4j/extensions/library"),
            Path.of("../nccl-extensions/src/main/java/io/github/nccl4j/extensions/presets"),
            Path.of("../integrations/spark/src/main/java/io/github/nccl4j/spark"),
            Path.of("../integrations/pytorch/src/main/java/io/github/nccl4j/pytorch"),
            Path.of("../integrations/zookeeper/src/main/java/io/github/nccl4j/zookeeper"),
            Path.of("../integrations/micrometer/src/main/java/io/github/nccl4j/micrometer"));

    private static final Pattern PUBLIC_TYPE =
            Pattern.compile("^public [a-z -]*?(class|interface|enum|record|@interface) \\w+", Pattern.MULTILINE);

    private static final Pattern SINCE = Pattern.compile("^ \\* @since \\d+\\.\\d+$", Pattern.MULTILINE);

    private static final Pattern NAME = Pattern.compile("^\\| `([^`]+)` \\|");

    @Test
    void everyPublicTypeNamesItsRelease() throws IOException {
        Set<Path> without = new TreeSet<>();
        int types = 0;
        for (Path folder : PACKAGES) {
            int before = types;
            for (Path file : sources(folder)) {
                String text = Files.readString(file);
                Matcher type = PUBLIC_TYPE.matcher(text);
                if (type.find()) {
                    types++;
                    String comment = text.substring(Math.max(text.lastIndexOf("/**", type.start()), 0), type.start());
                    if (!SINCE.matcher(comment).find()) {
                        without.add(file);
                    }
                }
            }
            assertTrue(types > before, () -> "no public type in " + folder);
        }
        assertEquals(Set.of(), without, "the comment of a public type must have a line @since");
    }

    private static List<Path> sources(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.toString().endsWith(".java"))
                    .sorted()
                    .toList();
        }
    }

    @Test
    void thePageListsWhatIsIncubating() throws IOException {
        Set<String> incubating = new TreeSet<>();
        for (JavaClass type : new ClassFileImporter().importPackages(Incubating.class.getPackageName())) {
            if (type.isAnnotatedWith(Incubating.class)) {
                incubating.add(name(type));
            }
            for (JavaMethod method : type.getMethods()) {
                if (method.isAnnotatedWith(Incubating.class)) {
                    incubating.add(name(type) + "." + method.getName());
                }
            }
        }
        assertEquals(incubating, new TreeSet<>(names("Incubating")));
    }

    private static String name(JavaClass type) {
        return type.getName().substring(type.getPackageName().length() + 1).replace('$', '.');
    }

    /** The names in the first column of the table below a heading. */
    private static Set<String> names(String heading) throws IOException {
        return Files.readAllLines(PAGE).stream()
                .dropWhile(line -> !line.equals("## " + heading))
                .skip(1)
                .takeWhile(line -> !line.startsWith("## "))
                .map(NAME::matcher)
                .filter(Matcher::find)
                .map(row -> row.group(1))
                .collect(Collectors.toSet());
    }
}
