package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tests.Cxx;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** C++ programs that call the engine without a JVM. */
final class EngineProgram {
    private EngineProgram() {}

    /** Compiles the resource of this package with that name, and links it with the engine. */
    static Path compile(Path folder, String name) throws IOException {
        for (String header : List.of("nccl.h", "nccl4j_host.h")) {
            Files.writeString(folder.resolve(header), resource(nccl.class, "/io/github/nccl4j/include/" + header));
        }
        Files.writeString(folder.resolve("checks.h"), resource(EngineProgram.class, "checks.h"));
        Path engine = Path.of(NativeLibrary.path());
        List<String> options = new ArrayList<>(Cxx.warnings());
        options.addAll(List.of("-pthread", "-I" + folder, engine.toString(), "-Wl,-rpath," + engine.getParent()));
        return Cxx.program(folder, name, source(name), options.toArray(String[]::new));
    }

    /** The text of a program of this package. */
    static String source(String name) throws IOException {
        return resource(EngineProgram.class, name + ".cpp");
    }

    private static String resource(Class<?> neighbour, String name) throws IOException {
        try (InputStream text = neighbour.getResourceAsStream(name)) {
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
