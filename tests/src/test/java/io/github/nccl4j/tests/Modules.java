package io.github.nccl4j.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

/** The folders of the modules that the parent POM names, those of its profiles, too. */
final class Modules {
    private static final Path ROOT = Path.of("..");

    private Modules() {}

    static List<Path> all() throws IOException {
        return Pattern.compile("<module>(.*?)</module>")
                .matcher(Files.readString(ROOT.resolve("pom.xml")))
                .results()
                .map(module -> ROOT.resolve(module.group(1)))
                .distinct()
                .sorted()
                .toList();
    }

    /** Those whose jars users have: what checks, measures or shows them, and the archive of all, is none of them. */
    static List<Path> ofUsers() throws IOException {
        return all().stream()
                .filter(module -> !module.toString()
                        .matches("../(tests|benchmarks|examples|integrations/interop|nccl-tools/bundle).*"))
                .toList();
    }
}
