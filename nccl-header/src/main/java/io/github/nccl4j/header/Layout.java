package io.github.nccl4j.header;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Determines sizes, alignments, offsets and values of a header's declarations with a C++ compiler. Thread-safe. */
public final class Layout {
    private static final int TIMEOUT_SECONDS = 120;

    /** Arguments of the macro NCCL_VERSION: releases before, at and after each change of its formula. */
    private static final List<String> VERSIONS = List.of("2, 4, 8", "2, 8, 4", "2, 9, 6", "2, 18, 1", "2, 32, 3");

    private static final String PROGRAM_START = """
            #include <stddef.h>
            #include <stdio.h>
            #include <type_traits>

            template <class T>
            void show(const char* name, T value) {
              if constexpr (std::is_floating_point_v<T>) printf("%s\\t%g\\n", name, (double)value);
              else if constexpr (std::is_pointer_v<T>) printf("%s\\t%s\\n", name, value ? "set" : "NULL");
              else printf("%s\\t%lld\\n", name, (long long)value);
            }

            int main() {
            """;

    /** Thrown if the compiler can't be run. */
    public static final class NoCompilerException extends Exception {
        private static final long serialVersionUID = 1;

        NoCompilerException(String message, Throwable cause) {
            super(message, cause);
        }
    }

    private final String compiler;
    private final Path shim;

    /**
     * Creates an instance for a compiler.
     *
     * @param compiler the C++ compiler
     * @param shim the folder with the substitutes for CUDA's headers
     */
    public Layout(String compiler, Path shim) {
        this.compiler = compiler;
        this.shim = shim;
    }

    /**
     * Compiles and runs a program that prints the layout of a header.
     *
     * @param file the header
     * @param header the parsed form of {@code file}
     * @param names limits the result to the names that this header declares, too
     * @return sizes, alignments, offsets and values by name, such as {@code "16"} for {@code "offset ncclConfig_t.blocking"}
     * @throws NoCompilerException if the compiler can't be run
     * @throws IllegalStateException if the header does not compile, with the message of the compiler, or if the compiler or the
     *     program exceeds 120 s
     */
    public Map<String, String> of(Path file, Header header, Header names) throws NoCompilerException {
        String include = String.format(Locale.ROOT, "#include \"%s\"%n", file.toAbsolutePath());
        return of(include, List.of(), header, names);
    }

    /**
     * As {@link #of(Path, Header, Header)}, for several headers.
     *
     * @param includes the lines that include the headers
     * @param folders the search path of the headers
     * @param header the parsed form of the headers
     * @param names limits the result to the names that this header declares, too
     */
    Map<String, String> of(String includes, List<Path> folders, Header header, Header names)
            throws NoCompilerException {
        return inFolder(folder -> run(folder, folders, includes + program(header, names)));
    }

    /** The preprocessed text of headers, with definitions of macros and line markers. */
    String preprocessed(String includes, List<Path> folders) throws NoCompilerException {
        return inFolder(folder -> {
            Path output = folder.resolve("preprocessed");
            compile(folder, folders, includes, List.of("-E", "-dD"), output);
            return Files.readString(output);
        });
    }

    /** A task that runs in a temporary folder. */
    @FunctionalInterface
    private interface Work<T> {
        T in(Path folder) throws IOException, InterruptedException, NoCompilerException;
    }

    private static <T> T inFolder(Work<T> work) throws NoCompilerException {
        try {
            Path folder = Files.createTempDirectory("nccl4j-header");
            try {
                return work.in(folder);
            } finally {
                delete(folder);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", e);
        }
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    private static String program(Header header, Header names) {
        StringBuilder text = new StringBuilder(PROGRAM_START);
        for (StructType struct : header.structs().values()) {
            if (names.structs().containsKey(struct.name())) {
                structure(text, struct, names.structs().get(struct.name()));
            }
        }
        for (EnumType type : header.enums().values()) {
            if (names.enums().containsKey(type.name())) {
                show(text, "sizeof " + type.name(), String.format(Locale.ROOT, "sizeof(%s)", type.name()));
                type.enumerators().forEach(e -> show(text, "enumerator " + e.name(), e.name()));
            }
        }
        for (Macro macro : header.macros().values()) {
            if (names.macros().containsKey(macro.name())) {
                macro(text, header, names, macro);
            }
        }
        return text.append("  return 0;\n}\n").toString();
    }

    private static void structure(StringBuilder text, StructType struct, StructType names) {
        String name = struct.name();
        show(text, "sizeof " + name, String.format(Locale.ROOT, "sizeof(%s)", name));
        show(text, "alignof " + name, String.format(Locale.ROOT, "alignof(%s)", name));
        for (Field field : common(struct, names)) {
            show(
                    text,
                    "offset " + name + "." + field.name(),
                    String.format(Locale.ROOT, "offsetof(%s, %s)", name, field.name()));
            show(
                    text,
                    "size " + name + "." + field.name(),
                    String.format(Locale.ROOT, "sizeof(%s::%s)", name, field.name()));
        }
    }

    private static List<Field> common(StructType struct, StructType names) {
        var known = names.fields().stream().map(Field::name).collect(Collectors.toSet());
        return struct.fields().stream()
                .filter(field -> known.contains(field.name()))
                .toList();
    }

    private static void macro(StringBuilder text, Header header, Header names, Macro macro) {
        String initialized = header.initializers()
                .getOrDefault(macro.name(), names.initializers().get(macro.name()));
        if (initialized != null && header.structs().containsKey(initialized)) {
            text.append(String.format(Locale.ROOT, "  { %s value = %s;%n", initialized, macro.name()));
            for (Field field :
                    common(header.structs().get(initialized), names.structs().get(initialized))) {
                boolean isNumber = !header.structs().containsKey(field.type());
                if (isNumber && !Known.RELEASE_FIELDS.contains(field.name())) {
                    show(text, "initial " + initialized + "." + field.name(), "value." + field.name());
                }
            }
            show(text, "initial size of " + initialized, "value.size == sizeof(value)");
            text.append("  }\n");
        } else if (macro.name().equals("NCCL_VERSION")) {
            VERSIONS.forEach(v -> show(text, "NCCL_VERSION(" + v + ")", "NCCL_VERSION(" + v + ")"));
        } else if (!macro.functionLike() && !macro.text().isEmpty() && !Known.VERSION_MACROS.contains(macro.name())) {
            show(text, "constant " + macro.name(), macro.name());
        }
    }

    private static void show(StringBuilder text, String name, String expression) {
        text.append(String.format(Locale.ROOT, "  show(\"%s\", %s);%n", name, expression));
    }

    private Map<String, String> run(Path folder, List<Path> folders, String program)
            throws IOException, InterruptedException, NoCompilerException {
        Path binary = folder.resolve("layout");
        compile(folder, folders, program, List.of(), binary);
        Path output = folder.resolve("output");
        execute(List.of(binary.toString()), output);
        Map<String, String> values = new LinkedHashMap<>();
        for (String line : Files.readAllLines(output)) {
            String[] columns = line.split("\t", 2);
            values.put(columns[0], columns[1]);
        }
        return values;
    }

    private void compile(Path folder, List<Path> folders, String program, List<String> options, Path to)
            throws IOException, InterruptedException, NoCompilerException {
        Path source = Files.writeString(folder.resolve("layout.cpp"), program);
        List<String> command = new ArrayList<>(List.of(compiler, "-std=c++17", "-w", "-I", shim.toString()));
        folders.forEach(each -> command.addAll(List.of("-I", each.toString())));
        command.addAll(options);
        command.addAll(List.of("-o", to.toString(), source.toString()));
        try {
            execute(command, folder.resolve("messages"));
        } catch (IOException e) {
            throw new NoCompilerException(
                    "no C++ compiler: " + e.getMessage() + "; set NCCL4J_CXX to the name of one", e);
        }
    }

    private static void execute(List<String> command, Path output) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        // Not by ChildProcesses, which is in a module whose build needs this one. If the JVM is killed, a compiler ends
        // by itself.
        try {
            if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                throw new IllegalStateException(command.get(0) + " did not end within " + TIMEOUT_SECONDS + " s");
            }
        } finally {
            process.destroyForcibly();
        }
        if (process.exitValue() != 0) {
            throw new IllegalStateException(
                    Files.readAllLines(output).stream().limit(10).collect(Collectors.joining("; ")));
        }
    }
}
