package io.github.nccl4j.tests;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/** The C++ compiler of the build, and the tools that come with it. */
public final class Cxx {
    /** Shorter than that of a test. */
    private static final Duration LIMIT = Duration.ofMinutes(9);

    private static final List<String> COMPILER =
            List.of(System.getProperty("nccl4j.test.cxx", "g++").split(" "));

    private static String version;

    private Cxx() {}

    /** Makes a shared library of a source text. */
    public static Path library(Path folder, String name, String source, String... options) throws IOException {
        return library(folder.resolve("lib" + name + ".so"), source, List.of(options));
    }

    /**
     * Makes a shared library of a source text. The options name other files of its folder, such as a library to link, by
     * their names alone, and what these contain follows from the source. Each library is compiled once for all tests that
     * make it, in whatever process, if {@code nccl4j.test.libraries} names a folder to keep them in.
     */
    public static Path library(Path library, String source, List<String> options) throws IOException {
        List<String> all = new ArrayList<>(List.of("-fPIC", "-shared"));
        all.addAll(options);
        Path file = Files.writeString(library.resolveSibling(library.getFileName() + ".cpp"), source);
        List<String> command =
                command(library.getFileName().toString(), file.getFileName().toString(), all);
        String folder = System.getProperty("nccl4j.test.libraries");
        Path kept = folder == null ? null : Path.of(folder, digest(command + version() + source) + ".so");
        if (kept != null && Files.exists(kept)) {
            return Files.copy(kept, library, StandardCopyOption.REPLACE_EXISTING);
        }
        run(library.getParent(), command);
        if (kept != null) {
            Files.createDirectories(kept.getParent());
            Path copy = Files.createTempFile(kept.getParent(), "", ".tmp");
            Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
            Files.move(copy, kept, StandardCopyOption.ATOMIC_MOVE);
        }
        return library;
    }

    /** Makes a program of a source text. */
    public static Path program(Path folder, String name, String source, String... options) throws IOException {
        Path program = folder.resolve(name);
        Path file = Files.writeString(folder.resolve(name + ".cpp"), source);
        output(command(program.toString(), file.toString(), List.of(options)));
        return program;
    }

    private static List<String> command(String made, String file, List<String> options) {
        List<String> command = new ArrayList<>(COMPILER);
        command.addAll(List.of("-std=c++17", "-o", made, file));
        command.addAll(options);
        return command;
    }

    private static synchronized String version() throws IOException {
        if (version == null) {
            List<String> command = new ArrayList<>(COMPILER);
            command.add("--version");
            version = output(command);
        }
        return version;
    }

    private static String digest(String text) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest);
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    /** The options for warnings; in the gate, which sets NCCL4J_STRICT, a warning is an error. */
    public static List<String> warnings() {
        boolean strict =
                !Objects.requireNonNullElse(System.getenv("NCCL4J_STRICT"), "").isEmpty();
        return strict ? List.of("-Wall", "-Wextra", "-Werror") : List.of("-Wall", "-Wextra");
    }

    /** The macros that the compiler and the C library define. */
    public static String predefined() throws IOException {
        List<String> command = new ArrayList<>(COMPILER);
        command.addAll(List.of("-dM", "-E", "-x", "c++", "-include", "features.h", "/dev/null"));
        return output(command);
    }

    /** What a command prints; it must succeed, within nine minutes. */
    public static String output(List<String> command) throws IOException {
        return run(null, command);
    }

    private static String run(Path folder, List<String> command) throws IOException {
        return output(folder, command, LIMIT);
    }

    /** As {@link #output(List)} in a folder, if not null, within a limit. */
    public static String output(Path folder, List<String> command, Duration limit) throws IOException {
        // A file: a pipe would keep this thread as long as the command, or a child of it, has it open.
        Path output = Files.createTempFile("output", ".txt");
        Process process = ChildProcesses.start(new ProcessBuilder(command)
                .directory(folder == null ? null : folder.toFile())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile()));
        try {
            boolean ended = process.waitFor(limit.toNanos(), TimeUnit.NANOSECONDS);
            String text = new String(Files.readAllBytes(output), StandardCharsets.UTF_8);
            if (!ended) {
                ChildProcesses.kill(process);
                throw new AssertionError(command + " has not ended within " + limit + ": " + text);
            }
            if (process.exitValue() != 0) {
                throw new AssertionError(command + " exited with " + process.exitValue() + ": " + text);
            }
            return text;
        } catch (InterruptedException e) {
            ChildProcesses.kill(process);
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while waiting for " + command, e);
        } finally {
            Files.delete(output);
        }
    }
}
