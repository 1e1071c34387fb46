package io.github.nccl4j.samples.support;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Finds CUDA's runtime library where the dynamic linker would not.
 *
 * <p>JavaCPP's class {@code cudart} can't be used again once it failed to load. So the library is loaded first, by its path: the dynamic
 * linker takes a library that is in the process already when the name is the same.
 */
final class CudaRuntime {

    private static final String NAME = "libcudart.so.13";

    private CudaRuntime() {}

    /** Opens the GPU of a rank. */
    static Device open(RankInfo self) {
        Set<String> tried = new LinkedHashSet<>();
        preload(tried);
        try {
            return new CudaDevice(self);
        } catch (UnsatisfiedLinkError | NoClassDefFoundError missing) {
            throw new NcclError("rank " + self.rank() + ": CUDA's runtime " + NAME + " can't be loaded: "
                    + reason(missing) + "; tried the dynamic linker and " + String.join(", ", tried)
                    + ". Set CUDA_HOME or LD_LIBRARY_PATH, or run without a GPU with --engine host");
        }
    }

    /** JavaCPP's own message says only that its last attempt failed; the linker's is the cause. */
    private static String reason(Throwable failure) {
        Throwable reason = failure;
        while (reason.getCause() != null) {
            reason = reason.getCause();
        }
        return reason.getMessage();
    }

    private static void preload(Set<String> tried) {
        if (!loadFirst(installations(), tried)) {
            // Starting Python takes a while, so it comes last.
            loadFirst(pythonPackages(), tried);
        }
    }

    private static boolean loadFirst(List<Path> folders, Set<String> tried) {
        for (Path folder : folders) {
            Path library = folder.resolve(NAME);
            if (!tried.add(library.toString()) || !Files.exists(library)) {
                continue;
            }
            try {
                System.load(library.toAbsolutePath().toString());
                return true;
            } catch (UnsatisfiedLinkError unusable) {
                tried.remove(library.toString());
                tried.add(unusable.getMessage());
            }
        }
        return false;
    }

    private static List<Path> installations() {
        List<Path> folders = new ArrayList<>();
        for (String folder : System.getenv().getOrDefault("LD_LIBRARY_PATH", "").split(File.pathSeparator)) {
            if (!folder.isBlank()) {
                folders.add(Path.of(folder));
            }
        }
        for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
            String home = System.getenv().getOrDefault(variable, "");
            if (!home.isBlank()) {
                folders.add(Path.of(home, "lib64"));
                folders.add(Path.of(home, "lib"));
            }
        }
        folders.add(Path.of("/usr/local/cuda/lib64"));
        folders.addAll(children(Path.of("/usr/local"), "cuda-13*", "lib64"));
        String architecture = System.getProperty("os.arch").equals("aarch64") ? "aarch64" : "x86_64";
        folders.add(Path.of("/usr/lib", architecture + "-linux-gnu"));
        folders.add(Path.of("/usr/lib64"));
        return folders;
    }

    private static List<Path> pythonPackages() {
        List<Path> folders = new ArrayList<>();
        try {
            Process python = new ProcessBuilder(
                            "python3",
                            "-c",
                            "import site, sys; print('\\n'.join(dict.fromkeys(sys.path + site.getsitepackages())))")
                    .redirectErrorStream(false)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            python.getOutputStream().close();
            try (BufferedReader reader =
                    new BufferedReader(new InputStreamReader(python.getInputStream(), StandardCharsets.UTF_8))) {
                reader.lines()
                        .filter(line -> line.endsWith("-packages"))
                        .forEach(line -> folders.addAll(children(Path.of(line, "nvidia"), "*", "lib")));
            }
        } catch (IOException | UncheckedIOException noPython) {
            // Then there are no packages of it either.
        }
        return folders;
    }

    private static List<Path> children(Path folder, String glob, String below) {
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, glob)) {
            for (Path entry : entries) {
                Path child = entry.resolve(below);
                if (Files.isDirectory(child)) {
                    found.add(child);
                }
            }
        } catch (IOException noSuchFolder) {
            // Nothing to look at.
        }
        return found;
    }
}
