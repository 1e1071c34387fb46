package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.Programs;
import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Each sample is a program of its own: short, on the API alone, and it runs where there is nothing but nccl-platform. */
@Timeout(600)
class StandaloneSamplesTest {
    private static final Path MODULE = Path.of("../samples");
    private static final Path SOURCES = MODULE.resolve("src/main/java/io/github/nccl4j/samples");
    private static final Path RESOURCES = MODULE.resolve("src/main/resources/io/github/nccl4j/samples");
    private static final int MOST_LINES = 150;

    private static final Pattern IMPORT = Pattern.compile("(?m)^import (?:static )?(.*);$");
    private static final String ALLOWED = "(java|io\\.github\\.nccl4j\\.(highlevel|extensions|launch|library))\\..*";

    /** The artifacts on which nccl-platform depends, with and without a platform, and nccl-extensions. */
    private static final Pattern OF_PLATFORM =
            Pattern.compile("(nccl|nccl-host|nccl-platform|nccl-extensions|javacpp|cuda)-\\d.*\\.jar");

    @TempDir
    Path folder;

    /** The classes by the list of the samples. */
    static List<String> classes() throws IOException {
        try (Stream<String> lines = Files.lines(RESOURCES.resolve("samples.txt"))) {
            return lines.filter(line -> line.matches("\\d.*"))
                    .map(line -> line.split(" ")[1])
                    .toList();
        }
    }

    @Test
    void listNamesEveryClassButTheOneThatChooses() throws IOException {
        try (Stream<Path> files = Files.list(SOURCES)) {
            Set<String> others = files.map(file -> file.getFileName().toString().replace(".java", ""))
                    .collect(Collectors.toCollection(TreeSet::new));
            classes().forEach(others::remove);
            assertEquals(Set.of("Main", "package-info"), others);
        }
        assertEquals(14, classes().size());
    }

    @ParameterizedTest
    @MethodSource("classes")
    void isShortAndOnTheApiAlone(String name) throws IOException {
        String source = Files.readString(SOURCES.resolve(name + ".java"));
        long lines = source.lines().count();
        assertTrue(lines <= MOST_LINES, lines + " lines");
        assertEquals(
                List.of(),
                IMPORT.matcher(source)
                        .results()
                        .map(found -> found.group(1))
                        .filter(imported -> !imported.matches(ALLOWED))
                        .toList());
        assertTrue(source.contains("public static void main(String[] args)"), source);
    }

    @Test
    void theFirstOneHasTwentyLines() throws IOException {
        long lines = Files.readString(SOURCES.resolve("Sum.java")).lines().count();
        assertTrue(lines <= 20, lines + " lines");
    }

    @ParameterizedTest
    @MethodSource("classes")
    void optionsAreThoseOfTheList(String name) throws IOException {
        Matcher block = Pattern.compile("(?ms)^\\d\\d-\\S+ " + name + "\\b(.*?)(\\n\\n|\\z)")
                .matcher(Files.readString(RESOURCES.resolve("samples.txt")));
        assertTrue(block.find());
        assertEquals(
                words("(?m)^ +(-\\S+)", block.group(1)),
                words("case \"(-[^\"]+)\" ->", Files.readString(SOURCES.resolve(name + ".java"))));
    }

    private static Set<String> words(String pattern, String text) {
        return Pattern.compile(pattern)
                .matcher(text)
                .results()
                .map(found -> found.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @ParameterizedTest
    @CsvSource({
        "Sum, '', sum 2.0, 0",
        "AllReduce, -e 64K, # Out of bounds values : 0 OK, 0",
        "SendRecv, -e 64K, every element checked, 0",
        "AllToAllV, -c 100 --window, every element checked, 0",
        "MultiCommunicator, -c 1000, every element checked, 0",
        "DataParallelTraining, -s 50, every bit checked, 0",
        "ReshardTensor, -r 101 -c 53, every element checked, 0",
        "MixtureOfExperts, -t 33 -e 7, every element checked, 0",
        "CudaGraphs, -i 20, every element checked, 0",
        "Windows, -c 1000, every element checked, 0",
        "SurviveAFailure, -c 100, after rank 1 was killed; 20 steps of 100 elements, 137",
        "Grow, -c 1000, every element checked, 0",
        "WithPython, -c 1000, every element checked, 0",
        "ElasticTraining, -k 0, every bit checked, 0"
    })
    void compilesAndRunsAlone(String name, String arguments, String text, int codeOfRank1) throws Exception {
        if (name.equals("WithPython")) {
            Programs.require("python3", "python3");
        }
        String platform = platform();
        Path source = Files.createDirectories(folder.resolve("source"));
        Files.copy(SOURCES.resolve(name + ".java"), source.resolve(name + ".java"));
        Path classes = Files.createDirectories(folder.resolve("classes/io/github/nccl4j/samples"));
        Files.copy(RESOURCES.resolve("with_python.py"), classes.resolve("with_python.py"));
        String root = folder.resolve("classes").toString();
        String[] javac = {
            "-proc:none",
            "-Xlint:all,-path,-processing",
            "-Werror",
            "-cp",
            platform,
            "-d",
            root,
            source.resolve(name + ".java").toString()
        };
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, javac));

        int port;
        try (ServerSocket socket = new ServerSocket(0)) {
            port = socket.getLocalPort();
        }
        List<String> main = new ArrayList<>(
                List.of("-cp", root + File.pathSeparator + platform, "io.github.nccl4j.samples." + name));
        main.addAll(words(arguments));
        List<Process> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            ranks.add(start(
                    main,
                    Map.of(
                            "RANK",
                            "" + rank,
                            "WORLD_SIZE",
                            "2",
                            "MASTER_ADDR",
                            "127.0.0.1",
                            "MASTER_PORT",
                            "" + port)));
        }
        String output = output(ranks.get(0));
        String ofRank1 = output(ranks.get(1));
        assertEquals(0, ranks.get(0).waitFor(), output + ofRank1);
        assertEquals(codeOfRank1, ranks.get(1).waitFor(), output + ofRank1);
        assertTrue(output.contains(text), output);
    }

    /** The sample as a single rank on a substitute for CUDA. */
    @Test
    void graphIsReplayedOnCuda() throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        FakeCuda cuda = FakeCuda.build(folder);
        ChildJvm.Outcome outcome = cuda.jvm(new ChildJvm())
                .classPathEnd(MODULE.resolve("target/classes"))
                .property("nccl4j.library", cuda.ncclThatTakes(1 << 20))
                .run("io.github.nccl4j.samples.CudaGraphs", "-i", "3");
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertTrue(outcome.output().contains("rank 0 replayed a graph 3 times"), outcome.output());
    }

    /** The class path of a program whose only dependencies are nccl-platform and nccl-extensions. */
    private static String platform() {
        List<String> jars = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> OF_PLATFORM
                        .matcher(Path.of(entry).getFileName().toString())
                        .matches())
                .toList();
        assertTrue(jars.size() >= 6, jars.toString());
        return String.join(File.pathSeparator, jars);
    }

    private static List<String> words(String arguments) {
        return arguments.isEmpty() ? List.of() : List.of(arguments.split(" "));
    }

    private static Process start(List<String> options, Map<String, String> environment) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"));
        command.addAll(options);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().keySet().removeIf(variable -> variable.startsWith("NCCL"));
        builder.environment().put("NCCL4J_ENGINE", "host");
        builder.environment().putAll(environment);
        return ChildProcesses.start(builder);
    }

    private static String output(Process process) throws IOException {
        return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @CsvSource({
        "02-send-recv -e 4K, 0, every element checked",
        "02 -e 4K, 0, every element checked",
        "02 -x, 1, no such option: -x",
        "send, 2, usage: java -jar nccl4j-samples.jar SAMPLE [OPTIONS]",
        "'', 2, 10-with-python",
    })
    void jarChoosesTheSampleByItsFirstArgument(String arguments, int code, String text) throws Exception {
        List<String> options = new ArrayList<>(
                List.of("-jar", MODULE.resolve("target/nccl4j-samples.jar").toString()));
        options.addAll(words(arguments));
        Process process = start(options, Map.of());
        String output = output(process);
        assertEquals(code, process.waitFor(), output);
        assertTrue(output.contains(text), output);
    }
}
