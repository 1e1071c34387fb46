package io.github.nccl4j.library;

import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

/**
 * Default places of libraries, for programs that do not name one. A place is a name for the dynamic linker or a path.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @since 0.1
 */
public final class LibrarySearch {
    /** Separates a skipped place from the reason. */
    static final char SKIPPED = '\u001f';

    private static final int CUDA_13 = 13_000;

    private final Map<String, String> environment;

    /**
     * Creates a search.
     *
     * @param environment the environment variables that define places, usually {@link SystemText#environment()}
     */
    public LibrarySearch(Map<String, String> environment) {
        this.environment = environment;
    }

    /**
     * Places of libnccl, in order of precedence. All fixed folders are listed, so that a failure can name them. A
     * folder that can't be searched is a place with {@link #SKIPPED} and the reason.
     */
    List<String> nccl() {
        Collection<String> places = new LinkedHashSet<>();
        places.add("libnccl.so.2");
        places.add("libnccl.so");
        for (String variable : List.of("NCCL_HOME", "NCCL_ROOT", "CUDA_HOME", "CUDA_PATH")) {
            String home = environment.get(variable);
            if (home != null && !home.isEmpty()) {
                places.add(home + "/lib/libnccl.so.2");
                places.add(home + "/lib64/libnccl.so.2");
            }
        }
        places.add("/usr/local/cuda/lib64/libnccl.so.2");
        places.add("/usr/local/nccl/lib/libnccl.so.2");
        List<String> skipped = new ArrayList<>();
        for (Path packages : sitePackages(skipped)) {
            places.add(SystemText.text(packages.resolve("nvidia/nccl/lib/libnccl.so.2")));
        }
        places.addAll(skipped);
        return List.copyOf(places);
    }

    /** Places of librccl, in order of precedence. */
    List<String> rccl() {
        List<String> places = new ArrayList<>(List.of("librccl.so.1", "librccl.so"));
        String home = environment.getOrDefault("ROCM_PATH", "");
        places.add((home.isEmpty() ? "/opt/rocm" : home) + "/lib/librccl.so.1");
        return List.copyOf(places);
    }

    /**
     * Returns the places of a library of CUDA's toolkit. All fixed folders are listed, so that a failure can name them.
     *
     * @param name the file name with the version against which programs link, such as "libcudart.so.13"
     * @return the places, in order of precedence
     */
    public List<String> cuda(String name) {
        String major = name.substring(name.lastIndexOf('.') + 1);
        Collection<String> places = new LinkedHashSet<>();
        places.add(name);
        for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
            String home = environment.get(variable);
            if (home != null && !home.isEmpty()) {
                places.add(home + "/lib64/" + name);
                places.add(home + "/lib/" + name);
            }
        }
        places.add("/usr/local/cuda/lib64/" + name);
        try (DirectoryStream<Path> versions = Files.newDirectoryStream(Path.of("/usr/local"), "cuda-" + major + "*")) {
            for (Path version : versions) {
                places.add(version.resolve("lib64").resolve(name).toString());
            }
        } catch (IOException noSuchFolder) {
            // No toolkit is installed.
        }
        for (Path packages : sitePackages(new ArrayList<>())) {
            // pip's packages for CUDA 13 share a folder; packages for earlier releases have a folder each.
            for (String folder : List.of("cu" + major, "cuda_runtime")) {
                places.add(SystemText.text(packages.resolve("nvidia")
                        .resolve(folder)
                        .resolve("lib")
                        .resolve(name)));
            }
        }
        return List.copyOf(places);
    }

    /**
     * Returns the places of a library of NCCL's extensions: of pip's package nccl-extensions, which has one library for
     * CUDA 12 and one for CUDA 13. A driver runs libraries for its own release of CUDA and for earlier ones.
     *
     * @param name the name of the extension, "m2n" or "ep"
     * @param driver the version of CUDA that the driver supports, such as 12080; 0 if it is not known
     * @return the places, in order of precedence
     */
    public List<String> extension(String name, int driver) {
        String file = "libnccl_" + name + ".so";
        Collection<String> places = new LinkedHashSet<>(List.of(file));
        List<String> skipped = new ArrayList<>();
        Collection<Path> folders = sitePackages(skipped);
        for (String cuda : driver >= CUDA_13 ? List.of("cu13", "cu12") : List.of("cu12")) {
            for (Path packages : folders) {
                places.add(SystemText.text(packages.resolve("nccl")
                        .resolve(name)
                        .resolve("lib")
                        .resolve(cuda)
                        .resolve(file)));
            }
        }
        places.addAll(skipped);
        return List.copyOf(places);
    }

    /**
     * The folders into which pip installs packages, for the environments and interpreters that the environment
     * variables name.
     *
     * @param skipped receives the folders that can't be searched
     */
    private Collection<Path> sitePackages(List<String> skipped) {
        Collection<Path> found = new LinkedHashSet<>();
        for (String variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
            Path prefix = folder(environment.getOrDefault(variable, ""), skipped);
            if (prefix != null) {
                addPackagesOf(prefix, found);
            }
        }
        for (String folder : environment.getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path bin = folder(folder, skipped);
            if (bin != null && Files.isExecutable(bin.resolve("python3"))) {
                Path python = bin.resolve("python3");
                // bin/python3 of a virtual environment is a link; its packages are in the environment, not at the
                // target.
                addPackagesOf(python.toAbsolutePath().getParent().getParent(), found);
                try {
                    addPackagesOf(python.toRealPath().getParent().getParent(), found);
                } catch (IOException unreadable) {
                    // The link can't be resolved, so the packages of its interpreter can't be found.
                }
            }
        }
        Path home = folder(environment.getOrDefault("HOME", ""), skipped);
        if (home != null) {
            addPackagesOf(home.resolve(".local"), found);
        }
        addPackagesOf(Path.of("/usr/local"), found);
        addPackagesOf(Path.of("/usr"), found);
        return found;
    }

    /** The folder with a name; null if the name is empty or can't be encoded for the system. */
    private static Path folder(String name, List<String> skipped) {
        try {
            return name.isEmpty() ? null : SystemText.path(name);
        } catch (InvalidPathException unspellable) {
            skipped.add(name + SKIPPED + unspellable.getReason());
            return null;
        }
    }

    private static void addPackagesOf(Path prefix, Collection<Path> found) {
        if (prefix == null) {
            return;
        }
        try (DirectoryStream<Path> pythons = Files.newDirectoryStream(prefix.resolve("lib"), "python3*")) {
            for (Path python : pythons) {
                for (String name : List.of("site-packages", "dist-packages")) {
                    Path packages = python.resolve(name);
                    if (Files.isDirectory(packages)) {
                        found.add(packages.toRealPath());
                    }
                }
            }
        } catch (IOException noSuchFolder) {
            // Nothing is installed under this prefix.
        }
    }
}
