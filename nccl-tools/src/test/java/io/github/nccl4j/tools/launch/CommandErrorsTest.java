package io.github.nccl4j.tools.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Error reports of commands, and the command lines of ranks. */
class CommandErrorsTest {
    @Command(
            name = "all",
            synopsisSubcommandLabel = "SAMPLE",
            subcommands = {One.class, Two.class})
    static final class All {}

    @Command(name = "01-one", aliases = "one")
    static final class One implements Callable<Integer> {
        static Exception failure;

        @Option(names = "--size")
        int size;

        @Override
        public Integer call() throws Exception {
            throw failure;
        }
    }

    @Command(name = "02-two")
    static final class Two {}

    private static String errors(int code, String... arguments) {
        StringWriter text = new StringWriter();
        CommandLine command = CommandErrors.install(new CommandLine(new All())).setErr(new PrintWriter(text, true));
        assertEquals(code, command.execute(arguments));
        return text.toString();
    }

    @Test
    void unknownSubcommandIsReportedWithTheKnownOnes() {
        assertEquals("nccl4j: no such sample: 'zzzz'; there are 01-one, 02-two\nSee: all --help\n", errors(2, "zzzz"));
        assertTrue(
                errors(2, "01-onee")
                        .startsWith("nccl4j: no such sample: '01-onee'; there are 01-one, 02-two; did you mean 01-one"),
                errors(2, "01-onee"));
        assertTrue(errors(2, "01-one", "--sizes", "3").startsWith("nccl4j: Unknown option"));
        assertTrue(errors(2, "01-one", "--sizes", "3").contains("See: all 01-one --help"));
        assertEquals("nccl4j: Unknown option: '-x'\nSee: all --help\n", errors(2, "-x"));
        assertTrue(errors(2, "02-two", "more").startsWith("nccl4j: Unmatched argument at index 1: 'more'"));
        assertTrue(errors(2, "01-one", "--size", "x").startsWith("nccl4j: Invalid value for option '--size'"));
    }

    @Test
    void onlyUnexpectedExceptionsPrintAStackTrace() {
        for (Exception failure : List.of(
                new IOException("broken"),
                new IllegalStateException("broken"),
                new IllegalArgumentException("broken"),
                new UncheckedIOException(new IOException("broken")))) {
            One.failure = failure;
            assertEquals("nccl4j: broken\n", errors(1, "one"));
        }
        One.failure = new IndexOutOfBoundsException("broken");
        String stack = errors(1, "one");
        assertTrue(stack.startsWith("java.lang.IndexOutOfBoundsException: broken\n\tat "), stack);
    }

    @Test
    void reasonCompletesFileExceptions() {
        assertEquals("/a: no such file or folder", CommandErrors.reason(new NoSuchFileException("/a")));
        assertEquals("/a: permission denied", CommandErrors.reason(new AccessDeniedException("/a")));
        assertEquals("/a: NotDirectoryException", CommandErrors.reason(new NotDirectoryException("/a")));
        assertEquals("/a: full", CommandErrors.reason(new FileSystemException("/a", null, "full")));
        assertEquals(
                "/a: no such file or folder",
                CommandErrors.reason(new UncheckedIOException("can't read", new NoSuchFileException("/a"))));
        assertEquals("java.io.IOException", CommandErrors.reason(new IOException()));
    }

    @Test
    void propertiesThatTheLauncherDecidesAreNotForwarded() {
        Properties properties = new Properties();
        for (String name : List.of(
                "nccl4j.z",
                "nccl4j.a",
                "org.bytedeco.b",
                "nccl4j.engine",
                "nccl4j.rank",
                "nccl4j.launcher",
                "user.home")) {
            properties.setProperty(name, "v");
        }
        assertEquals(
                List.of("-Dnccl4j.a=v", "-Dnccl4j.z=v", "-Dorg.bytedeco.b=v"),
                JavaCommand.forwardedProperties(properties));
    }

    @Test
    void commandOfARankHasClassPathAndOptions() {
        List<String> own = JavaCommand.of(List.of("-Xmx1g"), "a.Main", List.of("x", "y"));
        assertEquals(System.getProperty("java.home") + "/bin/java", own.get(0));
        assertTrue(own.contains("-Dnccl4j.launcher=" + ProcessHandle.current().pid()), own::toString);
        int at = own.indexOf("-cp");
        assertEquals("-Xmx1g", own.get(at - 1));
        assertTrue(
                List.of(own.get(at + 1).split(":")).stream().allMatch(entry -> entry.startsWith("/")), own::toString);
        assertEquals(
                System.getProperty("java.class.path").split(":").length,
                own.get(at + 1).split(":").length);
        assertEquals(List.of("a.Main", "x", "y"), own.subList(at + 2, own.size()));
        List<String> outer = JavaCommand.ofOuterLauncher(List.of(), "a.Main", List.of());
        assertTrue(outer.contains("-Dnccl4j.outerLauncher=true"), outer::toString);
        assertTrue(outer.stream().noneMatch(word -> word.startsWith("-Dnccl4j.launcher=")), outer::toString);
        assertEquals("a.Main", outer.get(outer.size() - 1));
    }
}
