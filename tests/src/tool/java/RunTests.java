import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;

/**
 * Runs all tests with Maven and counts them by their reports. Run by {@code ./nccl4j test} as a source file, in the root of the
 * checkout, with the arguments of Maven. The exit code is not 0 if the build or a test failed, or if a test class has no report.
 */
public final class RunTests {
    private static final String REPORTS = "target/surefire-reports";

    private final FileTime started;
    private final Map<String, Integer> reasons = new LinkedHashMap<>();
    private final Set<String> failures = new TreeSet<>();
    private final Set<String> repeated = new TreeSet<>();
    private int passed;
    private int failed;
    private int skipped;

    private RunTests(FileTime started) {
        this.started = started;
    }

    public static void main(String[] args) throws Exception {
        // By the clock of the files.
        Path mark = Files.createTempFile("nccl4j", null);
        RunTests tests = new RunTests(Files.getLastModifiedTime(mark));
        Files.delete(mark);
        int code = maven(args);
        List<Path> modules = tests.modules();
        // A chosen test has no report in other modules.
        List<String> missing =
                Stream.of(args).anyMatch(arg -> arg.startsWith("-Dtest=")) ? List.of() : tests.missing(modules);
        missing.forEach(name -> say(name + " has no report: its tests did not run to the end"));
        for (Path module : modules) {
            tests.count(module);
        }
        tests.print();
        System.exit(code != 0 ? code : missing.isEmpty() && tests.failed == 0 ? 0 : 1);
    }

    /** A failure must not keep later modules from being tested: Maven goes on, and the reports decide. */
    private static int maven(String[] args) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("mvn", "-B", "-fae", "-Dmaven.test.failure.ignore=true"));
        command.addAll(Arrays.asList(args));
        command.add("verify");
        return new ProcessBuilder(command).inheritIO().start().waitFor();
    }

    private static void say(String line) {
        System.err.println("nccl4j: " + line);
    }

    private boolean isNew(Path path) throws IOException {
        return Files.exists(path) && Files.getLastModifiedTime(path).compareTo(started) >= 0;
    }

    /** The modules whose tests were run. */
    private List<Path> modules() throws IOException {
        List<Path> modules = new ArrayList<>();
        try (Stream<Path> folders = Files.find(Path.of(""), 4, (path, attributes) -> path.endsWith(REPORTS))) {
            for (Path reports : folders.sorted().toList()) {
                if (isNew(reports)) {
                    modules.add(Path.of("").resolve(reports.subpath(0, reports.getNameCount() - 2)));
                }
            }
        }
        return modules;
    }

    /** The test classes without a new report: Maven goes on when a JVM that runs tests dies. */
    private List<String> missing(List<Path> modules) throws IOException {
        List<String> missing = new ArrayList<>();
        for (Path module : modules) {
            Path sources = module.resolve("src/test/java");
            try (Stream<Path> all = Files.exists(sources) ? Files.walk(sources) : Stream.empty()) {
                for (Path file : all.filter(file -> file.toString().endsWith("Test.java"))
                        .sorted()
                        .toList()) {
                    String name = sources.relativize(file)
                            .toString()
                            .replaceAll("\\.java$", "")
                            .replace('/', '.');
                    if (!isNew(module.resolve(REPORTS + "/TEST-" + name + ".xml"))) {
                        missing.add(name.substring(name.lastIndexOf('.') + 1));
                    }
                }
            }
        }
        return missing;
    }

    /** Counts cases: the totals of a report omit those of a class with parameters. */
    private void count(Path module) throws IOException, XMLStreamException {
        for (Path report : children(module.resolve(REPORTS))) {
            if (report.getFileName().toString().matches("TEST-.*\\.xml") && isNew(report)) {
                try (InputStream text = Files.newInputStream(report)) {
                    count(text);
                }
            }
        }
    }

    private void count(InputStream report) throws XMLStreamException {
        XMLStreamReader xml = XMLInputFactory.newInstance().createXMLStreamReader(report);
        String name = "";
        while (xml.hasNext()) {
            if (xml.next() != XMLStreamReader.START_ELEMENT) {
                continue;
            }
            switch (xml.getLocalName()) {
                case "testcase" -> {
                    passed++;
                    name = xml.getAttributeValue(null, "classname").replaceAll(".*\\.", "");
                }
                case "failure", "error" -> {
                    passed--;
                    failed++;
                    failures.add(name);
                }
                case "flakyFailure", "flakyError" -> repeated.add(name);
                case "skipped" -> {
                    passed--;
                    skipped++;
                    String message = xml.getAttributeValue(null, "message");
                    reasons.merge(reason(message == null ? xml.getElementText() : message, name), 1, Integer::sum);
                }
                default -> {
                    // Properties and output.
                }
            }
        }
    }

    /** The first line of the reason for which a test was skipped. */
    private static String reason(String message, String name) {
        String reason = message.strip()
                .replaceAll("\\R[\\s\\S]*", "")
                .replaceFirst("^.*TestAbortedException: ", "")
                .replaceFirst("^Assumption failed: ", "");
        return reason.isEmpty() ? "no reason given in " + name : reason;
    }

    private void print() {
        reasons.forEach((reason, times) -> System.out.println("nccl4j: " + times + " skipped: " + reason));
        if (!repeated.isEmpty()) {
            System.out.println("nccl4j: failed, and passed when repeated: " + String.join(" ", repeated));
        }
        if (!failures.isEmpty()) {
            System.out.println("nccl4j: failures in " + String.join(" ", failures));
        }
        System.out.println("nccl4j: " + passed + " passed, " + failed + " failed, " + skipped + " skipped");
    }

    private static List<Path> children(Path folder) throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.sorted().toList();
        }
    }
}
