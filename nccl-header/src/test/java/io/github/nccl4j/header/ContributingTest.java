package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Makes the first change of CONTRIBUTING.md in a copy, compiles it and runs the new case. */
class ContributingTest {
    private static final Path ROOT = Path.of("..");
    private static final Pattern CHANGE =
            Pattern.compile("<!-- change -->\n```diff\n--- a/(.*)\n\\+\\+\\+ b/(.*)\n((?:[ +-].*\n)+)```\n");

    @TempDir
    Path folder;

    private String source;

    /** The line of the source that the change adds. */
    private String added;

    @BeforeEach
    void apply() throws IOException {
        Matcher change = CHANGE.matcher(Files.readString(ROOT.resolve("CONTRIBUTING.md")));
        assertTrue(change.find(), "CONTRIBUTING.md has no change");
        assertEquals(change.group(1), change.group(2));
        List<String> lines = change.group(3).lines().toList();
        String old = text(lines, '+');
        String original = Files.readString(ROOT.resolve(change.group(1)));
        assertEquals(original.indexOf(old), original.lastIndexOf(old), "the place must be unique");
        assertTrue(original.contains(old), "the source does not have the lines around the change");
        source = original.replace(old, text(lines, '-'));
        added = lines.stream()
                .filter(line -> line.startsWith("+"))
                .collect(Collectors.joining("\n"))
                .substring(1)
                .strip();
    }

    /** The lines of one side of a change, without their marks. */
    private static String text(List<String> lines, char other) {
        return lines.stream()
                .filter(line -> line.charAt(0) != other)
                .map(line -> line.substring(1) + "\n")
                .collect(Collectors.joining());
    }

    @Test
    void newCasePasses() throws Exception {
        run(source);
    }

    @Test
    void newCaseFailsWithAnotherResult() throws Exception {
        String wrong = added.replace("|unsigned int", "|int");
        InvocationTargetException failure =
                assertThrows(InvocationTargetException.class, () -> run(source.replace(added, wrong)));
        assertInstanceOf(AssertionError.class, failure.getCause());
    }

    /** Compiles a copy of the test class and calls its method with the new row. */
    private void run(String java) throws Exception {
        Path file = Files.writeString(folder.resolve("HeaderParserTest.java"), java);
        String classPath = System.getProperty("java.class.path");
        int result = ToolProvider.getSystemJavaCompiler()
                .run(null, null, null, "-proc:none", "-cp", classPath, "-d", folder.toString(), file.toString());
        assertEquals(0, result);
        List<URL> places = new ArrayList<>(List.of(folder.toUri().toURL()));
        for (String place : classPath.split(File.pathSeparator)) {
            places.add(Path.of(place).toUri().toURL());
        }
        try (URLClassLoader loader =
                new URLClassLoader(places.toArray(URL[]::new), ClassLoader.getPlatformClassLoader())) {
            Class<?> type = loader.loadClass("io.github.nccl4j.header.HeaderParserTest");
            Method test = type.getDeclaredMethod("parsesPrototypes", String.class, String.class);
            var constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            test.setAccessible(true);
            String[] row = java.substring(java.indexOf("\"unsigned int f("))
                    .lines()
                    .findFirst()
                    .orElseThrow()
                    .replaceAll("[\",]", "")
                    .strip()
                    .split("\\|");
            test.invoke(constructor.newInstance(), row[0], row[1]);
        }
    }
}
