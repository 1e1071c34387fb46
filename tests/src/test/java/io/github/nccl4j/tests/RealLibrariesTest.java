package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.Header;
import io.github.nccl4j.header.HeaderCheck;
import io.github.nccl4j.header.Release;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The same jars on real releases of NCCL, without a GPU: those that {@code .ci/fetch-nccl} put into its cache. Each is
 * loaded in a JVM of its own.
 */
class RealLibrariesTest {
    /** What a machine without releases has instead of one, so that the skip is reported. */
    private static final Path NONE = Path.of("none");

    @TempDir
    static Path folder;

    static List<Path> releases() throws IOException {
        Path cache = cache();
        if (!Files.isDirectory(cache)) {
            return List.of(NONE);
        }
        try (Stream<Path> folders = Files.list(cache)) {
            List<Path> releases = folders.filter(folder -> Files.exists(folder.resolve("libnccl.so.2"))
                            && Files.exists(folder.resolve("nccl.h"))
                            && Release.of(folder.getFileName().toString()).isPresent())
                    .sorted()
                    .toList();
            return releases.isEmpty() ? List.of(NONE) : releases;
        }
    }

    private static Path cache() {
        for (String root : new String[] {System.getProperty("nccl4j.test.cache"), System.getenv("NCCL4J_CACHE")}) {
            if (root != null && !root.isEmpty()) {
                return Path.of(root, "nccl");
            }
        }
        String root = System.getenv("XDG_CACHE_HOME");
        return root == null || root.isEmpty()
                ? Path.of(System.getProperty("user.home"), ".cache", "nccl4j", "nccl")
                : Path.of(root, "nccl4j", "nccl");
    }

    private static void assumeThere(Path release) {
        if (release.equals(NONE)) {
            System.out.println("Skipped: no NCCL release in " + cache() + "; .ci/fetch-nccl fetches some");
        }
        assumeTrue(!release.equals(NONE), () -> "no NCCL release in " + cache());
    }

    private static Path ourHeader() throws IOException {
        return header("nccl.h");
    }

    private static Path header(String name) throws IOException {
        Path file = folder.resolve(name);
        try (var text = nccl.class.getResourceAsStream("/io/github/nccl4j/include/" + name)) {
            Files.write(file, text.readAllBytes());
        }
        return file;
    }

    private static final Release DEVICE_API = new Release(2, 28, 3);

    @ParameterizedTest
    @MethodSource("releases")
    void theHeaderAgreesWithOurs(Path release) throws IOException {
        assumeThere(release);
        Path shim = Path.of("../nccl-presets/src/main/native/shim").toAbsolutePath();
        header("nccl_device.h");
        List<HeaderCheck.Report> reports = new HeaderCheck(
                        ourHeader(), shim, System.getProperty("nccl4j.test.cxx", "g++"))
                .checkAll(release.resolve("nccl.h"));
        for (HeaderCheck.Report report : reports) {
            System.out.println(report.lines().get(report.lines().size() - 1));
            assertTrue(report.passed() && report.note().isEmpty(), () -> String.join("\n", report.lines()));
        }
        assertTrue(reports.get(0).compared() > 100, reports.get(0).compared() + " declarations compared");
        if (Release.of(release.getFileName().toString()).orElseThrow().compareTo(DEVICE_API) >= 0) {
            assertEquals(2, reports.size(), "no nccl_device.h in " + release + ": .ci/fetch-nccl fetches it");
            assertTrue(reports.get(1).compared() > 30, reports.get(1).compared() + " declarations compared");
        }
    }

    @ParameterizedTest
    @MethodSource("releases")
    void theLibraryAnswersAndProvidesWhatItsReleaseHas(Path release) throws IOException {
        assumeThere(release);
        Release expected = Release.of(release.getFileName().toString()).orElseThrow();
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", release.resolve("libnccl.so.2"))
                .run(RealLibraryScenario.class);
        assertEquals(0, outcome.exitCode(), outcome.output());
        Map<String, String> seen = outcome.output()
                .lines()
                .distinct()
                .filter(line -> line.contains("\t"))
                .map(line -> line.split("\t", 2))
                .collect(Collectors.toMap(line -> line[0], line -> line[1]));

        assertEquals(expected.toString(), seen.get("version"));
        assertEquals("nccl", seen.get("engine"));
        assertEquals("NCCL " + expected + " from " + release.resolve("libnccl.so.2"), seen.get("library"));
        assertTrue(seen.get("cuda").matches("1[2-9]\\.\\d+"), seen.get("cuda"));
        assertEquals("0", seen.get("alltoallv form"));
        String library = seen.get("library");
        assertEquals(
                expected.compareTo(Release.of("2.32.3").orElseThrow()) < 0
                        ? "NO_FUNCTION ncclSetEncryption needs NCCL 2.32.3, loaded is " + library
                        // NVIDIA's package; a build with TLS is none of the cache's.
                        : "BUILT_WITHOUT_TLS " + library + " can't encrypt its connections: it was built without TLS."
                                + " NCCL's sources are built with it by make TLS_BACKEND=OPENSSL3",
                seen.get("encryption"));
        assertEquals("0, 128 bytes, not all zero", seen.get("unique id"));
        assertEquals("no error", seen.get("error string 0"));
        assertEquals("unknown result code", seen.get("error string 100"));

        Map<String, String> functions = new TreeMap<>();
        for (Header header : List.of(Header.parse(ourHeader()), Header.parse(header("nccl_device.h")))) {
            header.functions()
                    .keySet()
                    .forEach(function ->
                            functions.put(function, header.since(function).orElseThrow()));
        }
        Set<String> provided = new TreeSet<>();
        functions.forEach((function, since) -> {
            if (since.startsWith("NCCL ")
                    && Release.of(since.substring("NCCL ".length()))
                                    .orElseThrow()
                                    .compareTo(expected)
                            <= 0) {
                provided.add(function);
            }
        });
        assertEquals(provided, Set.copyOf(List.of(seen.get("provided").split(" "))));

        functions.forEach((function, since) -> {
            if (!provided.contains(function)) {
                assertEquals(
                        function + " is not provided by " + seen.get("path") + " (NCCL " + expected + "); it came with "
                                + since,
                        seen.get("call " + function));
            }
        });
        resultCodes(seen, provided);
    }

    /** Both forms of lines, as the real ones write them. */
    @ParameterizedTest
    @MethodSource("releases")
    void theLogIsUnderstood(Path release) {
        assumeThere(release);
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", release.resolve("libnccl.so.2"))
                .environment("NCCL_SOCKET_IFNAME", "=none")
                .run("io.github.nccl4j.tests.highlevel.LogScenarios", "unique-id");
        assertEquals(0, outcome.exitCode(), outcome.output());
        // The last warning is what ncclGetLastError says; it comes from a place in the sources.
        List<String> lines = outcome.output().lines().toList();
        assertTrue(
                lines.get(lines.size() - 1).matches("WARN\t\\S+\\.cc:\\d+( \\(\\w+\\))?\t.+\ttrue"), outcome.output());
    }

    /** What the calls of {@link RealLibraryScenario} give where there is no driver. */
    private static void resultCodes(Map<String, String> seen, Set<String> provided) {
        Map<String, String> expected = new TreeMap<>(Map.of(
                "ncclGetVersion(null)", "4",
                "ncclGetUniqueId(null)", "4",
                "ncclGroupStart", "0",
                "ncclGroupEnd", "0",
                "ncclGroupEnd again", "5",
                "ncclCommDestroy(null)", "0",
                "ncclCommAbort(null)", "0",
                "ncclCommFinalize(null)", "0",
                "ncclCommCount(null)", "4",
                "ncclAllReduce(null)", "4 AllReduce : comm argument is NULL"));
        if (provided.contains("ncclAllReduceConfig")) {
            expected.put("ncclAllReduceConfig(null)", "4 AllReduce : comm argument is NULL");
            expected.put("ncclAllReduceConfig(forceAlgSelection 7)", "4 named: true");
        }
        if (provided.contains("ncclDevCommCreate")) {
            // Before it had a size, a structure of now would be taken for one with another beginning.
            boolean takesOurs = provided.contains("ncclCommQueryProperties");
            expected.put("ncclDevCommCreate(null)", takesOurs ? "4" : "takes other structures");
            expected.put("ncclLLA2ACalcSlots", "more than 0");
        }
        if (provided.contains("ncclCommQueryProperties")) {
            expected.put("ncclCommQueryProperties(null)", "4");
            expected.put("ncclGetPeerDevicePointer(null)", "4");
        }
        if (provided.contains("ncclSetEncryption")) {
            expected.put("ncclSetEncryption(none)", "0");
            expected.put("ncclSetEncryption(mode 7)", "4 named: true");
        }
        if (seen.get("gpus").equals("0")) {
            expected.put("ncclCommInitRank", "1");
            if (provided.contains("ncclMemAlloc")) {
                expected.put("ncclMemAlloc", "1");
            }
        } else {
            System.out.println("Left out: result codes without a driver; there are " + seen.get("gpus") + " GPUs");
        }
        Map<String, String> results = new TreeMap<>();
        seen.forEach((what, answer) -> {
            if (what.startsWith("result ")) {
                results.put(what.substring("result ".length()), answer);
            }
        });
        assertEquals(expected, results);
    }

    @Test
    void noReleaseOfTheCacheIsLeftOut() throws IOException {
        List<Path> tested = releases();
        System.out.println("NCCL releases tested: "
                + tested.stream().map(Path::getFileName).toList());
        assumeThere(tested.get(0));
        try (Stream<Path> folders = Files.list(cache())) {
            assertEquals(
                    folders.filter(folder ->
                                    Release.of(folder.getFileName().toString()).isPresent())
                            .sorted()
                            .toList(),
                    tested);
        }
    }
}
