package io.github.nccl4j.benchmarks;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * The libraries that the benchmark builds: a libnccl that does nothing, and nearly empty libraries with the names of CUDA's,
 * without which JavaCPP Presets CUDA does not load.
 */
final class StubLibraries {
    /** The system property with the folder of the libraries, for a JVM of the benchmark. */
    static final String FOLDER = "nccl4j.benchmarks.libraries";

    private static final String HEADER = "/io/github/nccl4j/include/nccl.h";
    private static final String COLLECTIVES = "collectives.cpp";
    private static final String NCCL = "libnccl.so.2";
    private static final List<String> CUDA = List.of("libcuda.so.1", "libcudart.so.12", "libcudart.so.13");

    private StubLibraries() {}

    /** Builds all libraries, and the C program that is linked against the libnccl. */
    static void make(Path folder) throws IOException {
        copyPrograms(folder);
        copy("nccl.cpp", folder.resolve("nccl.cpp"));
        compile(folder, "-shared", "-fPIC", "-Wl,-soname," + NCCL, "-o", NCCL, "nccl.cpp");
        compile(folder, "-o", "call", "call.cpp", "-l:" + NCCL, "-L.", "-Wl,-rpath," + folder);
        copy("cuda.cpp", folder.resolve("cuda.cpp"));
        for (String name : CUDA) {
            // Programs that are linked against CUDA require a symbol version with the name of the library.
            Files.writeString(folder.resolve(name + ".map"), name + " { *; };");
            compile(
                    folder,
                    "-shared",
                    "-fPIC",
                    "-Wl,-soname," + name,
                    "-Wl,--version-script=" + name + ".map",
                    "-o",
                    name,
                    "cuda.cpp");
        }
    }

    /** Builds the C program, linked against a real library. */
    static void makeProgram(Path folder, Path library) throws IOException {
        copyPrograms(folder);
        compileAgainst(library, folder, "-DREAL", "-o", "call", "call.cpp", "-ldl");
    }

    /** Builds a library of loops in C, linked against a real library. */
    static Path makeLoops(Path folder, Path library) throws IOException {
        copy(HEADER, folder.resolve("nccl.h"));
        copy("loops.cpp", folder.resolve("loops.cpp"));
        copy("coreshare.cpp", folder.resolve("coreshare.cpp"));
        compileAgainst(library, folder, "-shared", "-fPIC", "-o", "libloops.so", "loops.cpp", "coreshare.cpp");
        return folder.resolve("libloops.so");
    }

    /** Builds the program that times collectives, linked against a host engine. */
    static Path makeCollectives(Path folder, Path library) throws IOException {
        copy(HEADER, folder.resolve("nccl.h"));
        copyTo(folder, COLLECTIVES);
        compileAgainst(library, folder, "-o", "collectives", COLLECTIVES, "-pthread");
        return folder.resolve("collectives");
    }

    /** As {@link #makeCollectives}, with MPI. */
    static Path makeMpiCollectives(Path folder) throws IOException {
        // Without the C++ bindings of MPI, which are not used and cause warnings.
        compileWith(
                "mpicxx", folder, List.of("-DWITH_MPI", "-DOMPI_SKIP_MPICXX", "-o", "collectives-mpi", COLLECTIVES));
        return folder.resolve("collectives-mpi");
    }

    /** Copies a program that needs no compiler. */
    static void copyTo(Path folder, String program) throws IOException {
        copy(program, folder.resolve(program));
    }

    private static void compileAgainst(Path library, Path folder, String... arguments) throws IOException {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of(library.toString(), "-Wl,--allow-shlib-undefined", "-Wl,-rpath," + library.getParent()));
        compile(folder, all.toArray(String[]::new));
    }

    private static void copyPrograms(Path folder) throws IOException {
        copy(HEADER, folder.resolve("nccl.h"));
        copy("call.cpp", folder.resolve("call.cpp"));
        copy("call.py", folder.resolve("call.py"));
    }

    /** Loads all libraries, so that the dynamic linker finds them by their names. */
    static void load() {
        for (String name : CUDA) {
            System.load(folder().resolve(name).toString());
        }
        System.load(folder().resolve(NCCL).toString());
    }

    private static Path folder() {
        return Path.of(Objects.requireNonNull(System.getProperty(FOLDER), FOLDER));
    }

    private static void copy(String resource, Path file) throws IOException {
        try (InputStream in = StubLibraries.class.getResourceAsStream(resource)) {
            Files.copy(Objects.requireNonNull(in, resource), file);
        }
    }

    private static void compile(Path folder, String... arguments) throws IOException {
        compileWith(System.getProperty("nccl4j.cxx", "g++"), folder, List.of(arguments));
    }

    private static void compileWith(String compiler, Path folder, List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(compiler.split(" ")));
        command.addAll(List.of("-std=c++17", "-O2", "-I.", "-Wall", "-Wextra"));
        // As in the build: warnings are errors only in the gate.
        if (!Objects.requireNonNullElse(System.getenv("NCCL4J_STRICT"), "").isEmpty()) {
            command.add("-Werror");
        }
        command.addAll(arguments);
        CommandLine.output(folder, command);
    }
}
