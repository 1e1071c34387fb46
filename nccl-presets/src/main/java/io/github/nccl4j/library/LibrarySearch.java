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
 * Where a library may lie when the program does not say so. Places are names for the dynamic linker or paths.
 *
 * <p>Instances are immutable and may be used in any thread.
 */
public final class LibrarySearch {
    /** In a place that was skipped: between the place and the reason. */
    static final char SKIPPED = '\u001f';

    private final Map<String, String> environment;

    /**
     * Creates a search.
     *
     * @param environment the environment variables that it follows, usually {@link SystemText#environment()}
     */
    public LibrarySearch(Map<String, String> environment) {
        this.environment = environment;
    }

    /**
     * Places of libnccl, best first. Of the fixed folders all are listed, so that a failure can name them. A folder that
     * cannot be looked at is a place with {@link #SKIPPED} and the reason.
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

    /** Places of librccl, best first. */
    List<String> rccl() {
        List<String> places = new ArrayList<>(List.of("librccl.so.1", "librccl.so"));
        String home = environment.getOrDefault("ROCM_PATH", "");
        places.add((home.isEmpty() ? "/opt/rocm" : home) + "/lib/librccl.so.1");
        return List.copyOf(places);
    }

    /**
     * Places of a library of CUDA's toolkit, best first. Of the fixed folders all are listed, so that a failure can name
     * them.
     *
     * @param name its file name, with the version that programs link against: "libcudart.so.13"
     * @return the places
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
            // Then no toolkit is there.
        }
        for (Path packages : sitePackages(new ArrayList<>())) {
            // pip's packages for CUDA 13 share a folder; before, each had its own.
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
     * The folders into which pip installs packages, of the environments and interpreters that can be seen from here.
     *
     * @param skipped gets the folders that cannot be looked at
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
                // bin/python3 of a virtual environment is a link; the environment is the folder above it.
                addPackagesOf(python.toAbsolutePath().getParent().getParent(), found);
                try {
                    addPackagesOf(python.toRealPath().getParent().getParent(), found);
                } catch (IOException unreadable) {
                    // An interpreter that cannot be followed has no packages for us either.
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

    /** A folder by its name; null if there is no name, or none that the system can be asked for. */
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
