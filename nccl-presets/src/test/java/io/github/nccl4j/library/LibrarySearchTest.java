package io.github.nccl4j.library;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The order of the places where a library is looked for. */
class LibrarySearchTest {
    private static final List<String> NCCL_VARIABLES = List.of("NCCL_HOME", "NCCL_ROOT", "CUDA_HOME", "CUDA_PATH");
    private static final String NCCL = "libnccl.so.2";
    private static final String CUDART = "libcudart.so.13";

    private static LibrarySearch search(String... variables) {
        Map<String, String> environment = new HashMap<>();
        for (String variable : variables) {
            environment.put(variable, "/homes/" + variable);
        }
        return new LibrarySearch(environment);
    }

    private static List<String> inHomes(List<String> places) {
        return places.stream().filter(place -> place.startsWith("/homes/")).toList();
    }

    @Test
    void eachPairOfHomesOfNcclIsSearchedInTheOrderOfTheVariables() {
        for (int first = 0; first < NCCL_VARIABLES.size(); first++) {
            for (int second = first + 1; second < NCCL_VARIABLES.size(); second++) {
                String one = NCCL_VARIABLES.get(first);
                String other = NCCL_VARIABLES.get(second);
                assertEquals(
                        List.of(
                                "/homes/" + one + "/lib/" + NCCL,
                                "/homes/" + one + "/lib64/" + NCCL,
                                "/homes/" + other + "/lib/" + NCCL,
                                "/homes/" + other + "/lib64/" + NCCL),
                        inHomes(search(one, other).nccl()));
            }
        }
    }

    @Test
    void homesOfCudaAreSearchedInTheOrderOfTheVariables() {
        assertEquals(
                List.of(
                        "/homes/CUDA_HOME/lib64/" + CUDART,
                        "/homes/CUDA_HOME/lib/" + CUDART,
                        "/homes/CUDA_PATH/lib64/" + CUDART,
                        "/homes/CUDA_PATH/lib/" + CUDART),
                inHomes(search("CUDA_HOME", "CUDA_PATH").cuda(CUDART)));
        // NCCL's own homes have no toolkit.
        assertEquals(List.of(), inHomes(search("NCCL_HOME", "NCCL_ROOT").cuda(CUDART)));
    }

    /** The dynamic linker is asked before the variables, the fixed folders after them. */
    @Test
    void homesComeBetweenTheLinkerAndTheFixedFolders() {
        List<String> nccl = search("CUDA_PATH").nccl();
        assertEquals(List.of(NCCL, "libnccl.so", "/homes/CUDA_PATH/lib/" + NCCL), nccl.subList(0, 3));
        assertEquals(List.of("/usr/local/cuda/lib64/" + NCCL, "/usr/local/nccl/lib/" + NCCL), nccl.subList(4, 6));
        List<String> cuda = search("CUDA_PATH").cuda(CUDART);
        assertEquals(List.of(CUDART, "/homes/CUDA_PATH/lib64/" + CUDART), cuda.subList(0, 2));
        assertEquals("/usr/local/cuda/lib64/" + CUDART, cuda.get(3));
    }

    @Test
    void anEmptyVariableIsNoHome() {
        LibrarySearch search = new LibrarySearch(Map.of("NCCL_HOME", "", "CUDA_HOME", "", "CUDA_PATH", "/homes/cuda"));
        assertEquals(List.of("/homes/cuda/lib/" + NCCL, "/homes/cuda/lib64/" + NCCL), inHomes(search.nccl()));
        assertTrue(search.nccl().stream().noneMatch(place -> place.startsWith("/lib")), () -> "" + search.nccl());
        assertTrue(
                search.cuda(CUDART).stream().noneMatch(place -> place.startsWith("/lib")),
                () -> "" + search.cuda(CUDART));
    }

    /** Also where NCCL is installed for the linker, which tests that load it cannot use. */
    @Test
    void packagesOfPythonComeLast(@TempDir Path folder) throws IOException {
        Path packages = Files.createDirectories(folder.resolve("lib/python3.12/site-packages"))
                .toRealPath();
        List<String> places =
                new LibrarySearch(Map.of("VIRTUAL_ENV", folder.toString(), "CUDA_HOME", "/homes/cuda")).nccl();
        int found = places.indexOf(packages + "/nvidia/nccl/lib/" + NCCL);
        assertTrue(found > places.indexOf("/usr/local/nccl/lib/" + NCCL), () -> "" + places);
    }

    @Test
    void rocmIsWhereItsVariableSays() {
        assertEquals(
                List.of("librccl.so.1", "librccl.so", "/opt/rocm/lib/librccl.so.1"),
                new LibrarySearch(Map.of()).rccl());
        assertEquals(
                List.of("librccl.so.1", "librccl.so", "/homes/rocm/lib/librccl.so.1"),
                new LibrarySearch(Map.of("ROCM_PATH", "/homes/rocm")).rccl());
        assertEquals(
                "/opt/rocm/lib/librccl.so.1",
                new LibrarySearch(Map.of("ROCM_PATH", "")).rccl().get(2));
    }

    private static Path packages(Path prefix, String kind) throws IOException {
        return Files.createDirectories(prefix.resolve("lib/python3.12").resolve(kind))
                .toRealPath();
    }

    /** An interpreter on the PATH, and the one that it is a link to; others are none. */
    @Test
    void packagesOfInterpretersOnThePathAreSearched(@TempDir Path folder) throws IOException {
        Path environment = packages(folder.resolve("environment"), "site-packages");
        Path installation = packages(folder.resolve("installation"), "dist-packages");
        Path none = packages(folder.resolve("none"), "site-packages");
        Path python = Files.createFile(
                Files.createDirectories(folder.resolve("installation/bin")).resolve("python3"));
        assertTrue(python.toFile().setExecutable(true));
        Path bin = Files.createDirectories(folder.resolve("environment/bin"));
        Files.createSymbolicLink(bin.resolve("python3"), python);
        Files.createFile(Files.createDirectories(folder.resolve("none/bin")).resolve("python3"));
        Path home = packages(folder.resolve("home/.local"), "site-packages");
        List<String> places = new LibrarySearch(Map.of(
                        "PATH",
                        folder.resolve("none/bin") + ":" + bin + "::/nowhere",
                        "HOME",
                        folder.resolve("home").toString()))
                .nccl();
        List<String> found = places.stream()
                .filter(place -> place.startsWith(folder.toString()))
                .toList();
        assertEquals(
                List.of(
                        environment + "/nvidia/nccl/lib/" + NCCL,
                        installation + "/nvidia/nccl/lib/" + NCCL,
                        home + "/nvidia/nccl/lib/" + NCCL),
                found);
        assertTrue(places.stream().noneMatch(place -> place.startsWith(none.toString())), places::toString);
    }

    @Test
    void packagesOfCudaAreNamedByItsVersion(@TempDir Path folder) throws IOException {
        Path packages = packages(folder, "site-packages");
        List<String> places = new LibrarySearch(Map.of("CONDA_PREFIX", folder.toString())).cuda(CUDART);
        assertEquals(
                List.of(packages + "/nvidia/cu13/lib/" + CUDART, packages + "/nvidia/cuda_runtime/lib/" + CUDART),
                places.stream()
                        .filter(place -> place.startsWith(packages.toString()))
                        .toList());
    }

    @Test
    void aFolderThatHasNoNameIsSkippedWithTheReason() {
        List<String> places = new LibrarySearch(Map.of("VIRTUAL_ENV", "/a\0b")).nccl();
        String last = places.get(places.size() - 1);
        assertTrue(last.startsWith("/a\0b" + LibrarySearch.SKIPPED), places::toString);
        assertTrue(last.length() > ("/a\0b" + LibrarySearch.SKIPPED).length(), places::toString);
    }
}
