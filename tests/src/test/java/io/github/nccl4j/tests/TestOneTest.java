package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What {@code ./nccl4j test-one} compiles again, in a checkout of two modules, with a Maven that only counts its calls. */
class TestOneTest {
    private static final String POM = """
            <project>
              <modules><module>low</module><module>high</module></modules>
              <properties><maven.compiler.release>17</maven.compiler.release><greeting>hello</greeting></properties>
              <build><plugins><plugin>
                <artifactId>maven-surefire-plugin</artifactId>
                <configuration><argLine>-XX:+UseSerialGC</argLine></configuration>
              </plugin></plugins></build>
            </project>
            """;

    private static final String MODULE_POM = """
            <project><build><plugins><plugin>
              <artifactId>maven-surefire-plugin</artifactId>
              <configuration>
                <systemPropertyVariables><x.y>${greeting} of ${project.build.directory}</x.y></systemPropertyVariables>
              </configuration>
            </plugin></plugins></build></project>
            """;

    /** Compiled once: each run of a source file compiles it. */
    @TempDir
    static Path program;

    @TempDir
    Path folder;

    private Path root;
    private Path low;
    private Path test;
    private Path jar;

    @BeforeAll
    static void compileProgram() {
        ToolProvider javac = ToolProvider.findFirst("javac").orElseThrow();
        assertEquals(0, javac.run(System.out, System.err, "-d", program.toString(), "src/tool/java/TestOne.java"));
    }

    @BeforeEach
    void makeCheckout() throws IOException {
        root = Files.createDirectories(folder.resolve("a checkout")).toRealPath();
        Files.writeString(root.resolve("pom.xml"), POM);
        for (String module : List.of("low", "high")) {
            Files.createDirectories(root.resolve(module + "/target"));
            Files.writeString(root.resolve(module + "/pom.xml"), MODULE_POM);
        }
        low = source("low/src/main/java/p/Low.java", "public class Low { public static final String NAME = \"one\"; }");
        source("low/src/main/java/p/Other.java", "class Other { static class Within {} }");
        test = source("high/src/test/java/q/HighTest.java", "class HighTest { String name = p.Low.NAME; }");
        jar = root.resolve("low/target/low.jar");
        try (FileSystem entries =
                FileSystems.newFileSystem(URI.create("jar:" + jar.toUri()), Map.of("create", "true"))) {
            Files.createDirectories(entries.getPath("/p"));
            Files.writeString(entries.getPath("/p/Low.class"), "");
        }
        Files.writeString(root.resolve("low/target/test-classpath"), "/");
        Files.writeString(root.resolve("high/target/test-classpath"), jar.toString());
        Files.createDirectories(root.resolve("tests/mutation/target"));
        Files.writeString(root.resolve("tests/mutation/pom.xml"), "");
        Files.writeString(
                root.resolve("tests/mutation/target/tools"), "/r/org/junit/platform/console.jar:/r/other.jar");
        Path programs = Files.createDirectories(folder.resolve("programs"));
        Path maven = Files.writeString(programs.resolve("mvn"), "#!/bin/sh\necho \"$*\" >>\"" + folder + "/calls\"\n");
        assertTrue(maven.toFile().setExecutable(true));
    }

    @Test
    void onlyWhatAChangeReachesIsCompiled() throws Exception {
        String first = prepare(0, "HighTest");
        assertTrue(first.contains("building high with Maven"), first);
        assertEquals(1, calls());
        assertEquals(List.of("/p/Low.class", "/p/Other$Within.class", "/p/Other.class"), entries());
        assertEquals("", prepare(0, "q.HighTest#aMethod"));

        age();
        Files.writeString(low, Files.readString(low).replace("{ ", "{ private int count; "));
        assertEquals("nccl4j: compiling 1 of low, main ...\n", prepare(0, "HighTest"), "the declarations are the same");

        age();
        Files.writeString(low, Files.readString(low).replace("one", "two"));
        String constant = prepare(0, "HighTest");
        assertTrue(constant.contains("compiling 1 of high, test"), constant);
        Path compiled = root.resolve("high/target/test-classes/q/HighTest.class");
        assertTrue(Files.readString(compiled, StandardCharsets.ISO_8859_1).contains("two"), "the old constant");

        age();
        Files.delete(root.resolve("low/src/main/java/p/Other.java"));
        prepare(0, "HighTest");
        assertEquals(List.of("/p/Low.class"), entries());
        assertFalse(Files.exists(root.resolve("low/target/classes/p/Other$Within.class")));
        assertEquals(1, calls());

        Files.writeString(root.resolve("low/pom.xml"), MODULE_POM + "\n");
        prepare(0, "HighTest");
        assertEquals(2, calls(), "a POM has changed");
    }

    /** A later run of a test of another module finds nothing to compile, and needs the class in its jar. */
    @Test
    void aChangeIsPutIntoJarsOfModulesThatTheTestDoesNotNeed() throws Exception {
        source("low/src/test/java/p/LowTest.java", "class LowTest {}");
        Path other = root.resolve("high/target/high.jar");
        Files.copy(jar, other);
        prepare(0, "LowTest");
        try (FileSystem entries = FileSystems.newFileSystem(other)) {
            assertTrue(Files.size(entries.getPath("/p/Low.class")) > 0);
        }
    }

    @Test
    void filesThatThePomNamesArePutIntoTheJar() throws Exception {
        Path page = Files.writeString(root.resolve("page.md"), "one");
        Files.writeString(root.resolve("other.md"), "");
        Files.writeString(root.resolve("low/pom.xml"), """
                <project><build><resources><resource>
                  <directory>..</directory><includes><include>page.md</include></includes><targetPath>p</targetPath>
                </resource></resources></build></project>
                """);
        prepare(0, "HighTest");
        assertTrue(entries().contains("/p/page.md"), entries()::toString);
        age();
        Files.writeString(page, "two");
        prepare(0, "HighTest");
        try (FileSystem jarred = FileSystems.newFileSystem(jar)) {
            assertEquals("two", Files.readString(jarred.getPath("/p/page.md")));
        }
        assertFalse(entries().contains("/p/other.md"), entries()::toString);
        assertEquals(1, calls());
    }

    @Test
    void whatDoesNotCompileStaysOutOfDate() throws Exception {
        prepare(0, "HighTest");
        age();
        Files.writeString(low, "package p;\npublic class Low {}\n");
        for (int time = 0; time < 2; time++) {
            String failed = prepare(2, "HighTest");
            assertTrue(failed.contains("HighTest.java:2: error"), failed);
            assertTrue(failed.endsWith("nccl4j: high does not compile\n"), failed);
        }
        Files.writeString(test, "package q;\nclass HighTest {}\n");
        prepare(0, "HighTest");
        assertEquals(1, calls());
    }

    @Test
    void theCommandHasWhatThePomsSay() throws Exception {
        prepare(0, "HighTest#aMethod");
        List<String> command = Files.readAllLines(folder.resolve("command"));
        assertEquals(List.of("env", "-C", root + "/high"), command.subList(0, 3));
        assertEquals(List.of("-XX:+UseSerialGC", "-Dx.y=hello of " + root + "/high/target"), command.subList(4, 6));
        assertTrue(command.get(7).endsWith(jar + ":/r/org/junit/platform/console.jar"), command.get(7));
        assertEquals("--select-class=q.HighTest", command.get(command.size() - 2));
    }

    /** JUnit compares the pattern with the names of all methods, without their parameters. */
    @ParameterizedTest
    @CsvSource({
        "HighTest#aMethod, q.HighTest#aMethod",
        "HighTest, q.HighTest#aMethod q.HighTest#another q.HighTest$Within#aMethod",
    })
    void methodsAreChosenByName(String test, String expected) throws Exception {
        prepare(0, test);
        List<String> command = Files.readAllLines(folder.resolve("command"));
        String option = "--include-methodname=";
        String last = command.get(command.size() - 1);
        assertTrue(last.startsWith(option), last);
        Pattern pattern = Pattern.compile(last.substring(option.length()));
        String all =
                "q.HighTest#aMethod q.HighTest#another q.HighTest$Within#aMethod q.HighTestToo#aMethod qxHighTest#aMethod";
        assertEquals(
                expected,
                Stream.of(all.split(" ")).filter(pattern.asMatchPredicate()).collect(Collectors.joining(" ")));
    }

    @Test
    void theCommandsOfModulesHaveNoTestsAndCompileNothing() throws Exception {
        run(0, folder.toString(), "--commands", "low", "high");
        List<String> command = Files.readAllLines(folder.resolve("high"));
        assertEquals(8, command.size(), command::toString);
        assertEquals("-Dx.y=hello of " + root + "/high/target", command.get(5));
        assertTrue(command.get(7).endsWith("/high/target/classes:" + jar), command.get(7));
        assertTrue(Files.exists(folder.resolve("low")));
        assertFalse(Files.exists(folder.resolve("calls")));
    }

    @Test
    void testsAreNamedThatDoNotExist() throws Exception {
        assertEquals("nccl4j: no such test class: Missing\n", prepare(2, "Missing"));
    }

    private String prepare(int code, String test) throws Exception {
        return run(code, folder.resolve("command").toString(), test);
    }

    /** Runs the program, and returns its messages. */
    private String run(int code, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                System.getProperty("java.home") + "/bin/java",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                program.toString(),
                "TestOne",
                root.toString()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().merge("PATH", folder.resolve("programs").toString(), (old, first) -> first + ":" + old);
        Process process = ChildProcesses.start(builder);
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(code, process.waitFor(), output);
        return output;
    }

    private Path source(String name, String text) throws IOException {
        Path file = root.resolve(name);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, "package " + file.getParent().getFileName() + ";\n" + text + "\n");
    }

    /** Makes everything older, so that what is written next is younger. */
    private void age() throws IOException {
        try (Stream<Path> all = Files.walk(root)) {
            for (Path file : all.filter(Files::isRegularFile)
                    .filter(file -> !file.toString().matches(".*\\.xml|.*/mutation/.*"))
                    .toList()) {
                long time = Files.getLastModifiedTime(file).toMillis();
                Files.setLastModifiedTime(file, FileTime.fromMillis(time - 10_000));
            }
        }
    }

    private int calls() throws IOException {
        return Files.readAllLines(folder.resolve("calls")).size();
    }

    private List<String> entries() throws IOException {
        try (FileSystem entries = FileSystems.newFileSystem(jar);
                Stream<Path> all = Files.walk(entries.getPath("/"))) {
            return all.filter(Files::isRegularFile).map(Path::toString).sorted().toList();
        }
    }
}
