package io.github.nccl4j.tools;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.Extension;
import io.github.nccl4j.header.HeaderCheck;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nccl4j check-header}: compares the headers of NCCL installations with the header of the bindings. */
@Command(
        name = "check-header",
        description = {
            "Compares the headers of NCCL installations with those of nccl4j's bindings: nccl.h with the host functions of "
                    + "nccl_device.h, and nccl_m2n.h and nccl_ep.h of NCCL's extensions.",
            "",
            "Each function, constant, enumeration and struct of an installation must be in nccl4j's header with the same types, "
                    + "values and offsets. Declarations that only nccl4j's header has must be of a newer release. Needs a C++ "
                    + "compiler for layouts and for the extensions: g++, or the one in NCCL4J_CXX. The exit code is 1 if there is a difference.",
            ""
        })
final class CheckHeaderCommand implements Callable<Integer> {
    /** Folder of nccl4j's headers and of the shims in the bindings' jars. */
    private static final String RESOURCES = "/io/github/nccl4j/";

    /** Substitutes for the CUDA headers that NCCL's headers include. */
    private static final List<String> SHIMS =
            List.of("cuda.h", "cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h");

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;

    @Parameters(paramLabel = "PATH", arity = "1..*", description = "A header, or a folder with at least one.")
    private List<Path> paths;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException {
        for (Path path : paths) {
            if (!Files.exists(path)) {
                throw new ParameterException(spec.commandLine(), "no such file or folder: " + path);
            }
        }
        PrintWriter out = spec.commandLine().getOut();
        Path folder = Files.createTempDirectory("nccl4j-check-header");
        try {
            Path ours = extract("include/nccl.h", folder.resolve("nccl.h"));
            extract("include/nccl_device.h", folder.resolve("nccl_device.h"));
            for (Extension extension : Extension.values()) {
                extract("extensions/include/" + extension.file(), folder.resolve(extension.file()));
            }
            Path shim = Files.createDirectory(folder.resolve("shim"));
            for (String name : SHIMS) {
                extract("shim/" + name, shim.resolve(name));
            }
            String compiler = Objects.requireNonNullElse(System.getenv("NCCL4J_CXX"), "g++");
            HeaderCheck check = new HeaderCheck(ours, shim, compiler);
            boolean passed = true;
            for (Path path : paths) {
                if (paths.size() > 1) {
                    out.println(path + ":");
                }
                for (HeaderCheck.Report report : check.checkAll(path)) {
                    report.lines().forEach(out::println);
                    passed &= report.passed();
                }
            }
            return passed ? 0 : 1;
        } finally {
            delete(folder);
        }
    }

    private static Path extract(String resource, Path file) throws IOException {
        try (InputStream text = nccl.class.getResourceAsStream(RESOURCES + resource)) {
            if (text == null) {
                throw new IOException("no such resource in the jars of the bindings: " + RESOURCES + resource);
            }
            Files.copy(text, file);
        }
        return file;
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
