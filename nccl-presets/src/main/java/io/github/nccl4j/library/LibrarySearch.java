package io.github.nccl4j.library;

import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
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
    private final Map<String, String> environment;

    /**
     * Creates a search.
     *
     * @param environment the environment variables that it follows
     */
    public LibrarySearch(Map<String, String> environment) {
        this.environment = environment;
    }

    /** Places of libnccl, best first. Of the fixed folders all are listed, so that a failure can name them. */
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
        for (Path packages : sitePackages()) {
            places.add(packages.resolve("nvidia/nccl/lib/libnccl.so.2").toString());
        }
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
        for (Path packages : sitePackages()) {
            // pip's packages for CUDA 13 share a folder; before, each had its own.
            for (String folder : List.of("cu" + major, "cuda_runtime")) {
                places.add(packages.resolve("nvidia")
                        .resolve(folder)
                        .resolve("lib")
                        .resolve(name)
                        .toString());
            }
        }
        return List.copyOf(places);
    }

    /** The folders into which pip installs packages, of the environments and interpreters that can be seen from here. */
    private Collection<Path> sitePackages() {
        Collection<Path> found = new LinkedHashSet<>();
        for (String variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
            String prefix = environment.get(variable);
            if (prefix != null && !prefix.isEmpty()) {
                addPackagesOf(Path.of(prefix), found);
            }
        }
        for (String folder : environment.getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path python = Path.of(folder, "python3");
            if (!folder.isEmpty() && Files.isExecutable(python)) {
                // bin/python3 of a virtual environment is a link; the environment is the folder above it.
                addPackagesOf(python.toAbsolutePath().getParent().getParent(), found);
                try {
                    addPackagesOf(python.toRealPath().getParent().getParent(), found);
                } catch (IOException unreadable) {
                    // An interpreter that cannot be followed has no packages for us either.
                }
            }
        }
        String home = environment.get("HOME");
        if (home != null && !home.isEmpty()) {
            addPackagesOf(Path.of(home, ".local"), found);
        }
        addPackagesOf(Path.of("/usr/local"), found);
        addPackagesOf(Path.of("/usr"), found);
        return found;
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
