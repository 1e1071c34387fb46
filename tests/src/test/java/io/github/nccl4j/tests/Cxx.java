package io.github.nccl4j.tests;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The C++ compiler of the build, and the tools that come with it. */
public final class Cxx {
    private Cxx() {}

    /** Makes a shared library of a source text. */
    public static Path library(Path folder, String name, String source) throws IOException {
        Path library = folder.resolve("lib" + name + ".so");
        compile(folder, name, source, library, List.of("-fPIC", "-shared"));
        return library;
    }

    /** Makes a program of a source text. */
    public static Path program(Path folder, String name, String source, String... options) throws IOException {
        Path program = folder.resolve(name);
        compile(folder, name, source, program, List.of(options));
        return program;
    }

    private static void compile(Path folder, String name, String source, Path made, List<String> options)
            throws IOException {
        Path file = Files.writeString(folder.resolve(name + ".cpp"), source);
        List<String> command = new ArrayList<>(
                List.of(System.getProperty("nccl4j.test.cxx", "g++").split(" ")));
        command.addAll(List.of("-std=c++17", "-o", made.toString(), file.toString()));
        command.addAll(options);
        output(command);
    }

    /** What a command prints; it must succeed. */
    public static String output(List<String> command) throws IOException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        try {
            int exitCode = process.waitFor();
            if (exitCode != 0) {
                throw new AssertionError(command + " exited with " + exitCode + ": " + output);
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        return output;
    }
}
