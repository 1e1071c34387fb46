package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.operation.OperationKind;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.StubLibraries;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Follows the recipe for a collective in CONTRIBUTING: copies its lines, which are those of ncclAlltoAll, for ncclMirror,
 * a made-up all-to-all that stores the blocks of the ranks in reverse order.
 */
class CollectiveRecipeTest {
    private static final Path SOURCES = Path.of("..", "nccl-presets", "src", "main", "java", "io", "github", "nccl4j");
    private static final String CALLS = "io/github/nccl4j/internal/operation/Mirror.java";

    /** In the place of the functions that the build generates from the header. */
    private static final String MIRROR = """
            package io.github.nccl4j.internal.operation;
            final class Mirror {
                static {
                    System.load(System.getProperty("nccl4j.library"));
                }
                static native int ncclMirror(long send, long recv, long count, int type, long comm, long stream);
                static native int ncclMirrorConfig(
                        long send, long recv, long count, int type, long comm, long stream, long config);
            }
            """;

    private static final String SCENARIO = """
            package io.github.nccl4j.tests.highlevel;
            import io.github.nccl4j.highlevel.*;
            import io.github.nccl4j.highlevel.Element.Int32;
            import io.github.nccl4j.internal.operation.OperationKind;
            import io.github.nccl4j.launch.Rendezvous;
            import java.util.*;
            class CollectiveRecipeScenario {
                static final int SIZE = 2;
                static String calls;

                public static void main(String... args) throws Exception {
                    RankThreads.run(SIZE, communicator -> {
                        Device host = Device.host();
                        try (CudaStream stream = CudaStream.nonBlocking(host);
                                DeviceBuffer<Int32> send = host.allocate(ElementType.INT32, SIZE);
                                DeviceBuffer<Int32> recv = host.allocate(ElementType.INT32, SIZE)) {
                            for (int round = 0; round < 2; round++) {
                                int[] sent = {10 * communicator.rank() + round, 10 * communicator.rank() + 1 + round};
                                send.copyFrom(sent);
                                if (round == 0) {
                                    communicator.mirror(send, recv, stream);
                                } else {
                                    Group.run(() -> communicator.mirror(send, recv, stream));
                                }
                                communicator.work(stream).await();
                                int[] expected = {10 + communicator.rank() + round, communicator.rank() + round};
                                int[] got = new int[SIZE];
                                recv.copyTo(got);
                                require(Arrays.equals(expected, got), Arrays.toString(got));
                            }
                            String refusal = message(() -> communicator.mirror(send, recv.slice(0, 1), stream));
                            require(refusal.startsWith("recv.length() must be send.length()"), refusal);
                            refusal = message(() -> communicator.mirror(
                                    send, recv, stream, CollectiveConfig.builder().build()));
                            require(refusal.startsWith("ncclMirrorConfig is not a function"), refusal);
                            String log = communicator.flightRecorder().toJson();
                            require(log.contains("\\"ncclMirror\\""), log);
                        }
                    });
                    compared();
                    require(OperationKind.isCollective(OperationKind.MIRROR.code()), "not a collective");
                    System.out.println("all right");
                }

                private static void compared() throws Exception {
                    List<Rendezvous> meetings = ThreadRendezvous.of(SIZE);
                    UniqueId id = UniqueId.create();
                    List<java.util.concurrent.Callable<Void>> ranks = new ArrayList<>();
                    for (Rendezvous each : meetings) {
                        ranks.add(() -> {
                            Device host = Device.host();
                            int length = SIZE * (1 + each.rank());
                            try (Communicator communicator =
                                            Communicator.builder().check(each).create(id, each.rank(), SIZE);
                                    DeviceBuffer<Int32> send = host.allocate(ElementType.INT32, length);
                                    DeviceBuffer<Int32> recv = host.allocate(ElementType.INT32, length)) {
                                String refusal =
                                        message(() -> communicator.mirror(send, recv, CudaStream.defaultOf(host)));
                                require(refusal.contains("ncclMirror of 2 int32"), refusal);
                                communicator.abort();
                            }
                            return null;
                        });
                    }
                    io.github.nccl4j.tools.support.Threads.together(ranks, java.time.Duration.ofMinutes(1));
                }

                private static String message(Runnable call) {
                    try {
                        call.run();
                        return "no exception";
                    } catch (IllegalArgumentException | NcclLibraryException | CallMismatchException e) {
                        return e.getMessage();
                    }
                }

                private static void require(boolean condition, String message) {
                    if (!condition) {
                        throw new AssertionError(message);
                    }
                }
            }
            """;

    @TempDir
    Path folder;

    /** The lines of the recipe's block that has a text. */
    private static List<String> block(String text) throws IOException {
        String contributing = Files.readString(Path.of("..", "CONTRIBUTING.md"));
        String recipe = contributing.substring(contributing.indexOf("## Add a collective"));
        Matcher blocks = Pattern.compile("```text\n(.*?)```", Pattern.DOTALL).matcher(recipe);
        return blocks.results()
                .map(found -> found.group(1))
                .filter(block -> block.contains(text))
                .findFirst()
                .orElseThrow()
                .lines()
                .toList();
    }

    private static String renamed(String line) {
        return line.replace("nccl.ncclAlltoAll", "Mirror.ncclMirror")
                .replace("ncclAlltoAll", "ncclMirror")
                .replace("ALL_TO_ALL", "MIRROR")
                .replaceFirst(
                        "MIRROR = \\d+;", "MIRROR = " + OperationKind.all().size() + ";");
    }

    /** The place of a line in a source, in which the formatter may have broken it. */
    private static MatchResult find(String line, String source) {
        String words = Stream.of(line.strip().split(" ")).map(Pattern::quote).collect(Collectors.joining("\\s+"));
        Matcher place = Pattern.compile("(?<![\\w.])" + words).matcher(source);
        assertTrue(place.find(), () -> "CONTRIBUTING has a line that the sources lack: " + line);
        return place.toMatchResult();
    }

    private static String kinds() throws IOException {
        String source = Files.readString(SOURCES.resolve("internal/operation/OperationKind.java"));
        for (String line : block("Code.ALL_TO_ALL")) {
            int end = find(line, source).end();
            if (line.equals("ALL_TO_ALL,")) {
                // A code is the index, so a new kind is the last one.
                end = source.indexOf("    };", end);
            }
            source = source.substring(0, end) + "\n" + renamed(line) + "\n" + source.substring(end);
        }
        return source;
    }

    /** Both forms of the method. */
    private static String communicator() throws IOException {
        String source = Files.readString(SOURCES.resolve("highlevel/Communicator.java"));
        StringBuilder methods = new StringBuilder();
        String more = "";
        for (String submission : block("submitOrCompose(")) {
            find(submission, source);
            methods.append("public <T extends Element> void mirror(")
                    .append("DeviceBuffer<T> send, DeviceBuffer<T> recv, CudaStream stream" + more + ") {\n")
                    .append(renamed(submission) + "\n}\n");
            more = ", CollectiveConfig config";
        }
        return source.substring(0, source.lastIndexOf('}')) + methods + "}\n";
    }

    private Path write(String name, String text) throws IOException {
        Path file = folder.resolve("sources").resolve(name);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, text);
    }

    @Test
    void aMadeUpCollectiveWorks() throws IOException {
        List<String> javac = Stream.concat(
                        Stream.of("-proc:none", "-nowarn", "-cp", System.getProperty("java.class.path"), "-d"),
                        Stream.of(
                                        Files.createDirectories(folder.resolve("classes")),
                                        write(CALLS, MIRROR),
                                        write("io/github/nccl4j/internal/operation/OperationKind.java", kinds()),
                                        write("io/github/nccl4j/highlevel/Communicator.java", communicator()),
                                        write("CollectiveRecipeScenario.java", SCENARIO))
                                .map(Path::toString))
                .toList();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        int compiled = ToolProvider.getSystemJavaCompiler().run(null, null, errors, javac.toArray(String[]::new));
        assertEquals(0, compiled, () -> errors.toString(StandardCharsets.UTF_8));
        Path library = StubLibraries.mirrorOver(folder, Path.of(NativeLibrary.path()));
        ChildJvm.Outcome outcome = new ChildJvm()
                .classPath(folder.resolve("classes"))
                .property("nccl4j.library", library)
                .run("io.github.nccl4j.tests.highlevel.CollectiveRecipeScenario");
        assertEquals("all right\n", outcome.output());
        assertEquals(0, outcome.exitCode());
    }
}
