package io.github.nccl4j.mutation;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Plants one fault each at random lines, and names those that no test detects: Sample ROOT WORK COUNT SEED TESTS MODULE...; see
 * ./nccl4j mutate --help.
 */
final class Sample {
    private static final List<String> MODULES = List.of(
            "nccl-header",
            "nccl-presets",
            "nccl-host",
            "nccl-tools",
            "integrations/pytorch",
            "integrations/spark",
            "integrations/zookeeper",
            "integrations/micrometer",
            "nccl-extensions");
    private static final List<String> TEST_MODULES = List.of(
            "nccl-header",
            "nccl-presets",
            "nccl-tools",
            "tests",
            "integrations/pytorch",
            "integrations/spark",
            "integrations/zookeeper",
            "integrations/micrometer",
            "nccl-extensions");
    private final Path root;
    private final Path work;
    private final Path results;
    private final List<TestClass> tests = new ArrayList<>();
    private Checkout plain;
    private Checkout probed;
    private Probes probes;
    private String lastFailure;

    private Sample(Path root, Path work) {
        this.root = root;
        this.work = work;
        this.results = root.resolve("tests/mutation/target");
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Sample sample = new Sample(Path.of(arguments[0]), Path.of(arguments[1]));
        List<String> only = arguments[4].isEmpty() ? List.of() : List.of(arguments[4].split(","));
        List<String> modules = List.of(arguments).subList(5, arguments.length);
        for (String module : modules) {
            if (!MODULES.contains(module)) {
                System.err.println("nccl4j: no such module: " + module + "; there are " + String.join(", ", MODULES));
                System.exit(2);
            }
        }
        List<Fault> faults = sample.draw(Long.parseLong(arguments[3]), modules.isEmpty() ? MODULES : modules);
        boolean complete = sample.run(faults, Integer.parseInt(arguments[2]), only);
        System.exit(complete ? 0 : 1);
    }

    /** One fault of each line that can have one, in the order of the seed. A larger sample begins with the smaller one. */
    private List<Fault> draw(long seed, List<String> modules) throws IOException {
        Map<String, List<Fault>> places = new TreeMap<>();
        for (String module : modules) {
            List<Fault> all = CxxFaults.all(root, module);
            if (!module.equals("nccl-host")) {
                all.addAll(JavaFaults.all(root, module, libraries(module)));
            }
            for (Fault fault : all) {
                places.computeIfAbsent(fault.path() + ":" + fault.line(), none -> new ArrayList<>())
                        .add(fault);
            }
        }
        Random random = new Random(seed);
        List<List<Fault>> order = new ArrayList<>(places.values());
        Collections.shuffle(order, random);
        say(order.size() + " lines can have a fault");
        return order.stream()
                .map(place -> place.get(random.nextInt(place.size())))
                .toList();
    }

    /** The class path of a module, by which PIT knows the classes that a changed method refers to. */
    private ClassLoader libraries(String module) throws IOException {
        List<URL> places = new ArrayList<>();
        List<String> command = command(module);
        for (String place : command.get(command.size() - 1).split(":")) {
            places.add(Path.of(place).toUri().toURL());
        }
        return new URLClassLoader(places.toArray(URL[]::new));
    }

    /** The command that runs the tests of a module, up to the class path. */
    private List<String> command(String module) throws IOException {
        return Files.readAllLines(results.resolve("sample/commands").resolve(module.replace('/', '.')));
    }

    private boolean run(List<Fault> faults, int count, List<String> only) throws IOException, InterruptedException {
        plain = new Checkout(copy("plain"));
        record(only);
        List<String> equivalents = equivalents();
        Map<String, int[]> rows = new TreeMap<>();
        List<String> survivors = new ArrayList<>();
        int planted = 0;
        for (Fault fault : faults) {
            if (planted == count) {
                break;
            }
            String text = Files.readAllLines(root.resolve(fault.path()))
                    .get(fault.line() - 1)
                    .strip();
            if (equivalents.stream()
                    .anyMatch(line ->
                            line.startsWith(fault.path() + " ## " + text + " ## " + fault.description() + " ## "))) {
                continue;
            }
            String outcome;
            String ran;
            try {
                if (!fault.plan().plant(plain)) {
                    say(fault.path() + ":" + fault.line() + " " + fault.description() + ": does not compile");
                    continue;
                }
                List<TestClass> reaching = tests.stream()
                        .filter(test -> test.passes() && test.reaches(fault))
                        .sorted(Comparator.comparingDouble(TestClass::seconds))
                        .toList();
                ran = reaching.isEmpty() ? "not reached" : reaching.size() + " test classes: " + names(reaching);
                outcome = killer(reaching);
            } finally {
                plain.restore();
            }
            planted++;
            int[] row = rows.computeIfAbsent(fault.row(), none -> new int[2]);
            row[0]++;
            say(planted + " " + fault.path() + ":" + fault.line() + " " + fault.description() + ": "
                    + (outcome == null ? "survived" : "killed by " + outcome));
            if (outcome == null) {
                survivors.add(fault.path() + ":" + fault.line() + " " + fault.description() + "\n    " + text + "\n    "
                        + ran);
            } else {
                row[1]++;
            }
        }
        return print(rows, survivors);
    }

    private boolean print(Map<String, int[]> rows, List<String> survivors) {
        System.out.printf(Locale.ROOT, "%-36s %8s %8s %6s%n", "module", "faults", "killed", "%");
        int[] sum = new int[2];
        rows.forEach((name, row) -> {
            printRow(name, row);
            sum[0] += row[0];
            sum[1] += row[1];
        });
        printRow("all", sum);
        survivors.forEach(System.out::println);
        List<TestClass> failing = tests.stream().filter(test -> !test.passes()).toList();
        failing.forEach(test -> System.out.println("FAILS WITHOUT A FAULT, left out: " + test.name()));
        return failing.isEmpty();
    }

    private static void printRow(String name, int[] row) {
        System.out.printf(
                Locale.ROOT, "%-36s %8d %8d %6.1f%n", name, row[0], row[1], row[0] == 0 ? 0 : 100.0 * row[1] / row[0]);
    }

    private static String names(List<TestClass> tests) {
        return String.join(
                        ", ",
                        tests.stream().limit(10).map(TestClass::simpleName).toList())
                + (tests.size() > 10 ? ", ..." : "");
    }

    /** Lines of mutation/equivalents: path ## text of the line ## fault ## reason. */
    private List<String> equivalents() throws IOException {
        Path file = root.resolve("tests/mutation/equivalents");
        return Files.exists(file) ? Files.readAllLines(file) : List.of();
    }

    // --- tests

    /** Runs the tests, which are of a few modules, with the fastest first; what notices the fault, or null. */
    private String killer(List<TestClass> reaching) throws IOException, InterruptedException {
        Map<String, List<TestClass>> modules = new LinkedHashMap<>();
        reaching.forEach(test -> modules.computeIfAbsent(test.module(), none -> new ArrayList<>())
                .add(test));
        for (List<TestClass> left : modules.values()) {
            while (!left.isEmpty()) {
                int code = runTests(plain, left);
                if (code == 0) {
                    break;
                }
                if (code != 1) {
                    return code == Commands.TIMEOUT ? "the time limit" : "the end of the JVM with " + code;
                }
                // Again and alone: tests before it or bad luck must not count as a kill.
                String failure = lastFailure;
                List<String> order = left.stream().map(TestClass::name).toList();
                int at = order.indexOf(failure.split(" ")[0]);
                if (runTests(plain, left.subList(at, at + 1)) != 0) {
                    return failure;
                }
                left.subList(0, at + 1).clear();
            }
        }
        return null;
    }

    private int runTests(Checkout copy, List<TestClass> chosen) throws IOException, InterruptedException {
        String module = chosen.get(0).module();
        List<String> command = new ArrayList<>();
        command(module).forEach(word -> command.add(word.replace(root + "/", copy.root() + "/")));
        command.set(command.size() - 1, command.get(command.size() - 1) + ":" + System.getProperty("java.class.path"));
        Path result = work.resolve("result");
        Files.deleteIfExists(result);
        command.add(TestRunner.class.getName());
        command.add(result.toString());
        chosen.forEach(test -> command.add(test.name()));
        double seconds = chosen.stream().mapToDouble(TestClass::seconds).sum();
        int code = Commands.run(command, work, work.resolve("log"), Math.round(60 + 5 * seconds));
        if (code == 1 && !Files.exists(result)) {
            return 3;
        }
        lastFailure = code == 1 ? Files.readString(result) : null;
        return code;
    }

    // --- coverage

    /** Reads what is known of each test class, and runs those of which nothing is known, alone in a JVM. */
    private void record(List<String> only) throws IOException, InterruptedException {
        for (String module : TEST_MODULES) {
            for (String name : testClasses(module)) {
                String simple = name.substring(name.lastIndexOf('.') + 1);
                if (only.isEmpty() || only.contains(module) || only.contains(simple)) {
                    Path file = results.resolve("coverage").resolve(module).resolve(name);
                    TestClass known = TestClass.read(root, file, module, name);
                    if (known == null) {
                        known = recorded(module, name);
                        known.write(root, file);
                    }
                    tests.add(known);
                }
            }
        }
    }

    private List<String> testClasses(String module) throws IOException {
        Path folder = root.resolve(module).resolve("src/test/java");
        if (!Files.isDirectory(root.resolve(module).resolve("target/test-classes"))) {
            return List.of();
        }
        try (Stream<Path> files = Files.walk(folder)) {
            return files.filter(file -> file.toString().endsWith("Test.java"))
                    .map(file -> folder.relativize(file).toString())
                    .map(file ->
                            file.substring(0, file.length() - ".java".length()).replace('/', '.'))
                    .sorted()
                    .toList();
        }
    }

    private TestClass recorded(String module, String name) throws IOException, InterruptedException {
        if (probes == null) {
            probed = new Checkout(copy("probed"));
            probes = new Probes(probed, MODULES);
        }
        probes.clear();
        // Ten minutes at most: 60 s and five times the time that is not known yet.
        TestClass unknown = new TestClass(module, name, 108, true, Map.of());
        double started = System.nanoTime();
        boolean passes = runTests(probed, List.of(unknown)) == 0;
        Map<String, BitSet> lines = probes.lines();
        boolean probesMatter = !passes;
        if (!passes) {
            // A test may look at classes, at times or at memory, which the probes change.
            started = System.nanoTime();
            passes = runTests(plain, List.of(unknown)) == 0;
        }
        double seconds = Math.round((System.nanoTime() - started) / 1e8) / 10.0;
        say("recorded " + name + ": " + seconds + " s, " + lines.size() + " sources reached"
                + (!passes ? ", FAILS WITHOUT A FAULT" : probesMatter ? ", of which a part ran" : ""));
        if (!passes) {
            Path log = results.resolve("coverage").resolve(module + "-" + name + ".log");
            Files.createDirectories(log.getParent());
            Files.copy(work.resolve("log"), log, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
        }
        return new TestClass(module, name, seconds, passes, lines);
    }

    private Path copy(String name) throws IOException, InterruptedException {
        Path folder = Files.createDirectories(work.resolve(name));
        // The compiler's lists of headers have paths of the checkout; with them all of the engine would be compiled
        // once more.
        String command =
                "tar -C \"$1\" --exclude=./.git --exclude=./tests/mutation/target -cf - . | tar -C \"$2\" -xf -\n"
                        + "sed -i \"s|$1/|$2/|g\" \"$2\"/nccl-host/target/objects/*/*.d \"$2\"/nccl-host/target/objects/*/command";
        int code = Commands.run(
                List.of("bash", "-c", command, "copy", root.toString(), folder.toString()),
                work,
                work.resolve("log"),
                600);
        if (code != 0) {
            throw new IOException(
                    "the checkout must be copied to " + folder + ": " + Files.readString(work.resolve("log")));
        }
        return folder;
    }

    private static void say(String text) {
        System.err.println("nccl4j: " + text);
    }
}
