package io.github.nccl4j.tests;

import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.ClassArchive;
import io.github.nccl4j.tools.support.Threads;
import java.io.File;
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A JVM of its own for code that decides what a process can decide only once, such as its library, or that is to be killed. */
public final class ChildJvm {
    /** An argument of commands that start ranks, which then compile as this JVM's children do. */
    public static final String QUICK_RANKS = "-J-XX:TieredStopAtLevel=1";

    private static final String OWN_CLASS_PATH = ownClassPath();

    private Duration limit = Duration.ofMinutes(5);
    private final List<String> prefix = new ArrayList<>();
    /** Where JavaCPP unpacks libraries: a folder of this checkout. */
    private static final String CACHE = "org.bytedeco.javacpp.cachedir";

    private final List<String> options = new ArrayList<>();
    private String classPath = OWN_CLASS_PATH;
    private boolean archived = true;
    private String modulePath;
    private final Map<String, String> environment = new LinkedHashMap<>();

    /** What a finished JVM left. */
    public record Outcome(int exitCode, String output) {}

    /** A JVM that runs. */
    public record Running(Process process, StringBuffer soFar, CompletableFuture<String> output, Duration limit) {
        /** Waits until it has written something, or has ended. */
        public void awaitText(String text) {
            try {
                Waiting.value(
                        "'" + text + "' of a child",
                        () -> soFar,
                        now -> now.indexOf(text) >= 0 || output.isDone(),
                        limit);
            } catch (AssertionError e) {
                ChildProcesses.kill(process);
                throw e;
            }
        }

        public Outcome await() {
            try {
                if (!process.waitFor(limit.toSeconds(), TimeUnit.SECONDS)) {
                    ChildProcesses.kill(process);
                    throw new AssertionError("still running after " + limit + ": " + output.join());
                }
                return new Outcome(process.exitValue(), output.join());
            } catch (InterruptedException e) {
                ChildProcesses.kill(process);
                throw new AssertionError(e);
            }
        }
    }

    public ChildJvm option(String option) {
        options.add(option);
        return this;
    }

    public ChildJvm property(String name, Object value) {
        options.add("-D" + name + "=" + value);
        return this;
    }

    /** How long it may run, if not a minute. */
    public ChildJvm limit(Duration limit) {
        this.limit = limit;
        return this;
    }

    public ChildJvm environment(String name, String value) {
        environment.put(name, value);
        return this;
    }

    /** Words before the command: a program that runs it. */
    public ChildJvm by(String... program) {
        prefix.addAll(List.of(program));
        return this;
    }

    /** Puts a folder or jar before the tests' own class path. */
    public ChildJvm classPath(Path first) {
        classPath = first + File.pathSeparator + classPath;
        archived = false;
        return this;
    }

    /** Puts a folder or jar after the tests' own class path: the JVM starts faster than with one before it. */
    public ChildJvm classPathEnd(Path last) {
        classPath += File.pathSeparator + last;
        return this;
    }

    /** Removes the jars whose names begin so. */
    public ChildJvm withoutJars(String prefix) {
        classPath = Stream.of(classPath.split(File.pathSeparator))
                .filter(entry -> !new File(entry).getName().startsWith(prefix))
                .collect(Collectors.joining(File.pathSeparator));
        archived = false;
        return this;
    }

    /**
     * That of the tests, for any working directory, with their jar instead of their folders where the build has it: Java archives
     * no classes of folders.
     */
    private static String ownClassPath() {
        String own = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(entry -> new File(entry).getAbsolutePath())
                .collect(Collectors.joining(File.pathSeparator));
        String jar = System.getProperty("nccl4j.test.jar");
        return jar == null
                ? own
                : Stream.concat(Stream.of(jar), Stream.of(own.split(File.pathSeparator)))
                        .filter(entry -> entry.endsWith(".jar"))
                        .collect(Collectors.joining(File.pathSeparator));
    }

    /** Runs a module, "module/class", instead of a class of the class path. */
    public ChildJvm modulePath(String path) {
        modulePath = path;
        return this;
    }

    public Outcome run(String main, String... args) {
        return start(main, args).await();
    }

    public Outcome run(Class<?> main, String... args) {
        return start(main, args).await();
    }

    /** Starts the class's main method; output and errors arrive in one text. */
    public Running start(Class<?> main, String... args) {
        return start(main.getName(), args);
    }

    /** Starts a class by its name, or a source file by its path. */
    public Running start(String main, String... args) {
        List<String> command = new ArrayList<>(prefix);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto"));
        if (Runtime.version().feature() >= 22) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        if (System.getProperty("nccl4j.test.jar") != null && archived && modulePath == null) {
            ClassArchive.of(OWN_CLASS_PATH)
                    .ifPresent(file ->
                            command.addAll(List.of("-XX:SharedArchiveFile=" + file, "-Dnccl4j.classes=" + file)));
        }
        if (System.getProperty(CACHE) != null) {
            command.add("-D" + CACHE + "=" + System.getProperty(CACHE));
        }
        command.addAll(options);
        command.addAll(
                modulePath == null
                        ? List.of("-cp", classPath, main)
                        : List.of("-p", modulePath, "--add-modules", "ALL-MODULE-PATH", "-m", main));
        command.addAll(List.of(args));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL4J_"));
        // Messages of the system are compared, and are not translated so; all else follows the locale.
        builder.environment().put("LANGUAGE", "C");
        builder.environment().putAll(environment);
        try {
            Process process = ChildProcesses.start(builder);
            process.getOutputStream().close();
            StringBuffer soFar = new StringBuffer();
            CompletableFuture<String> output = CompletableFuture.supplyAsync(
                    () -> {
                        try (Reader reader = process.inputReader(StandardCharsets.UTF_8)) {
                            char[] chars = new char[8192];
                            for (int read = reader.read(chars); read >= 0; read = reader.read(chars)) {
                                soFar.append(chars, 0, read);
                            }
                            return soFar.toString();
                        } catch (IOException e) {
                            throw new UncheckedIOException(e);
                        }
                    },
                    Threads.EACH);
            return new Running(process, soFar, output, limit);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
