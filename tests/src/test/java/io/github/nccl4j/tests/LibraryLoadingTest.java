package io.github.nccl4j.tests;

import static io.github.nccl4j.testing.Expect.assertContains;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which library is loaded, and what is said when it is not, or lacks what is called. */
class LibraryLoadingTest {
    @TempDir
    static Path folder;

    private static Outcome run(Map<String, Object> properties, Map<String, String> environment, String... scenario) {
        ChildJvm jvm = new ChildJvm();
        properties.forEach(jvm::property);
        environment.forEach(jvm::environment);
        Outcome outcome = jvm.run(LoadingScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome;
    }

    private static Outcome run(Map<String, Object> properties, String... scenario) {
        return run(properties, Map.of(), scenario);
    }

    @Test
    void aPropertyChoosesTheLibrary() throws IOException {
        Path library = StubLibraries.small(folder, 21801);
        String output = run(Map.of("nccl4j.library", library), "describe").output();
        assertContains(output, "path " + library, "version 2.18.1 21801", "engine nccl", "form 0");
    }

    @Test
    void aVariableChoosesTheLibrary() throws IOException {
        Path library = StubLibraries.small(folder, 21903);
        String output = run(Map.of(), Map.of("NCCL4J_LIBRARY", library.toString()), "describe")
                .output();
        assertContains(output, "path " + library, "version 2.19.3 21903");
    }

    @Test
    void aPropertyWinsOverAVariableAndALibraryOverAnEngine() throws IOException {
        Path library = StubLibraries.small(folder, 22005);
        Map<String, String> environment = Map.of("NCCL4J_LIBRARY", "/other.so", "NCCL4J_ENGINE", "rccl");
        String output =
                run(Map.of("nccl4j.library", library), environment, "describe").output();
        assertContains(output, "path " + library);
    }

    @Test
    void aCallChoosesTheLibraryWithoutLoadingIt() throws IOException {
        Path library = StubLibraries.small(folder, 22105);
        String output = run(Map.of(), "choose", library.toString()).output();
        assertContains(output, "loaded false\nloaded false\npath " + library, "loaded true");
    }

    @Test
    void candidatesEndWithTheFirstThatCanBeLoadedAndNoneIsChosen() throws IOException {
        Path home = Files.createDirectory(folder.resolve("home"));
        Path broken =
                Files.writeString(Files.createDirectory(home.resolve("lib")).resolve("libnccl.so.2"), "text");
        Path whole = Files.copy(
                StubLibraries.small(folder, 22203),
                Files.createDirectory(home.resolve("lib64")).resolve("libnccl.so.2"));
        Map<String, String> environment = Map.of("NCCL_HOME", home.toString(), "LD_LIBRARY_PATH", "");
        String output =
                run(Map.of("nccl4j.engine", "nccl"), environment, "candidates").output();
        assertContains(
                output,
                "libnccl.so.2: cannot open shared object file",
                broken + ": not a shared library (no ELF header)\n" + whole + ": \nloaded false\n");
    }

    @Test
    void candidatesOfAWrongSettingAreItsError() {
        String output = run(Map.of("nccl4j.engine", "cuda"), "candidates").output();
        assertContains(output, "nccl4j.engine (NCCL4J_ENGINE) is 'cuda'; it must be nccl, rccl, host or auto");
    }

    /** A deadlock of class initialisation would end the test by the child's limit. */
    @RepeatedTest(3)
    void twoThreadsMayUseItFirstWithJavaCppAndWithout() {
        assertContains(run(Map.of("nccl4j.engine", "host"), "first-use").output(), "both");
    }

    @Test
    void theHostEngineIsChosenByName() {
        String output = run(Map.of("nccl4j.engine", "host"), "describe").output();
        assertContains(output, "libnccl4j_host.so", "engine host", "form 11");
        output = run(Map.of(), Map.of("NCCL4J_ENGINE", "host"), "describe").output();
        assertContains(output, "engine host");
    }

    @Test
    void automaticWithoutAGpuIsTheHostEngineWithOneWarning() {
        String output = run(Map.of("nccl4j.engine", "auto"), Map.of("CUDA_VISIBLE_DEVICES", ""), "describe")
                .output();
        assertContains(output, "engine host");
        assertEquals(2, output.split("no GPU was found: running on the host engine", -1).length, output);
    }

    @Test
    void anUnknownEngineIsNamedByEveryCall() {
        String output =
                run(Map.of("nccl4j.engine", "cuda"), "call", "ncclGetVersion").output();
        String message = "nccl4j.engine (NCCL4J_ENGINE) is 'cuda'; it must be nccl, rccl, host or auto";
        assertEquals(message + "\n" + message + "\n", output);
    }

    @Test
    void aMissingLibraryIsReportedWithItsPath() {
        String output = run(Map.of("nccl4j.library", folder.resolve("libnone.so")), "call", "ncclGetVersion")
                .output();
        assertContains(
                output,
                "NCCL could not be loaded; tried in this order:\n  " + folder.resolve("libnone.so")
                        + ": No such file or directory\n",
                "It was chosen by the system property nccl4j.library");
    }

    @Test
    void withoutRcclEveryPlaceThatWasTriedIsNamed() throws IOException {
        assumeNotInstalled("librccl.so", "/opt/rocm/lib/librccl.so.1");
        String output = run(Map.of("nccl4j.engine", "rccl"), Map.of("LD_LIBRARY_PATH", ""), "call", "ncclGetVersion")
                .output();
        assertContains(output, "  librccl.so.1: ", "  librccl.so: ", "  /opt/rocm/lib/librccl.so.1: ", "librccl1");
        assertFalse(output.contains("NVIDIA"), output);
    }

    @Test
    void withoutNcclEveryPlaceThatWasTriedIsNamed() throws IOException {
        assumeNotInstalled("libnccl.so", "/usr/local/cuda/lib64/libnccl.so.2");
        Path home = Files.createDirectories(folder.resolve("bare-home"));
        Path packages = Files.createDirectories(home.resolve(".local/lib/python3.12/site-packages"));
        Map<String, String> environment = Map.of(
                "HOME", home.toString(),
                "CUDA_HOME", folder.resolve("cuda").toString(),
                "LD_LIBRARY_PATH", "");
        String output = run(Map.of(), environment, "call", "ncclGetVersion").output();
        assertContains(
                output,
                "  libnccl.so.2: cannot open shared object file",
                "  libnccl.so: cannot open shared object file",
                "  " + folder.resolve("cuda/lib64/libnccl.so.2") + ": No such file or directory",
                "  /usr/local/cuda/lib64/libnccl.so.2: No such file or directory",
                "  " + packages.resolve("nvidia/nccl/lib/libnccl.so.2") + ": No such file or directory",
                "nccl4j.library",
                "NCCL4J_LIBRARY");
    }

    /** Skips a test that needs a machine without a library. */
    private static void assumeNotInstalled(String name, String file) throws IOException {
        assumeFalse(Cxx.output(List.of("/sbin/ldconfig", "-p")).contains(name), () -> "the linker knows " + name);
        assumeFalse(Files.exists(Path.of(file)), () -> file + " is there");
    }

    @Test
    void aLibraryOfAPythonPackageIsFound() throws IOException {
        // The dynamic linker's would be preferred.
        assumeNotInstalled("libnccl.so", "/usr/local/cuda/lib64/libnccl.so.2");
        Path prefix = folder.resolve("venv");
        Path lib = Files.createDirectories(prefix.resolve("lib/python3.12/site-packages/nvidia/nccl/lib"));
        Files.copy(StubLibraries.small(folder, 22809), lib.resolve("libnccl.so.2"));
        String output = run(Map.of(), Map.of("VIRTUAL_ENV", prefix.toString(), "LD_LIBRARY_PATH", ""), "describe")
                .output();
        assertContains(output, "path " + lib.resolve("libnccl.so.2"), "version 2.28.9");
    }

    @Test
    void filesThatAreNoLibraryAreReportedNotMapped() throws IOException {
        Path text = Files.writeString(folder.resolve("text.so"), "not a library");
        assertContains(
                run(Map.of("nccl4j.library", text), "call", "ncclGetVersion").output(),
                text + ": not a shared library (no ELF header)");

        byte[] whole = Files.readAllBytes(StubLibraries.small(folder, 22304));
        Path half = Files.write(folder.resolve("half.so"), Arrays.copyOf(whole, 5000));
        assertContains(
                run(Map.of("nccl4j.library", half), "call", "ncclGetVersion").output(),
                half + ": truncated: it has 5000 bytes and needs ");

        assertContains(
                run(Map.of("nccl4j.library", folder), "call", "ncclGetVersion").output(),
                folder + ": not a regular file");

        Path other = Cxx.library(folder, "other", "extern \"C\" int something() { return 1; }");
        assertContains(
                run(Map.of("nccl4j.library", other), "call", "ncclGetVersion").output(),
                other + ": not an NCCL library (no ncclGetVersion)");
    }

    /** Returns where the last segment that is mapped ends in an ELF file. */
    private static int endOfSegments(byte[] library) {
        ByteBuffer file = ByteBuffer.wrap(library).order(ByteOrder.LITTLE_ENDIAN);
        long end = 0;
        for (int i = 0; i < file.getShort(56); i++) {
            int header = (int) file.getLong(32) + i * file.getShort(54);
            if (file.getInt(header) == 1) {
                end = Math.max(end, file.getLong(header + 8) + file.getLong(header + 32));
            }
        }
        return (int) end;
    }

    /** What is behind the segments is not mapped, and nothing else is missing. */
    @Test
    void aFileThatEndsWithinItsLastSegmentIsReportedNotMapped() throws IOException {
        byte[] whole = Files.readAllBytes(StubLibraries.small(folder, 22307));
        int end = endOfSegments(whole);
        Path cut = Files.write(folder.resolve("cut.so"), Arrays.copyOf(whole, end - 1));
        assertContains(
                run(Map.of("nccl4j.library", cut), "call", "ncclGetVersion").output(),
                cut + ": truncated: it has " + (end - 1) + " bytes and needs " + end);
        Path enough = Files.write(folder.resolve("enough.so"), Arrays.copyOf(whole, end));
        assertContains(run(Map.of("nccl4j.library", enough), "describe").output(), "path " + enough, "version 2.23.7");
    }

    /** Runs a scenario where the linker searches these folders first. */
    private static String runWith(String searchPath, String... scenario) {
        return run(Map.of("nccl4j.engine", "nccl"), Map.of("LD_LIBRARY_PATH", searchPath), scenario)
                .output();
    }

    private static Path nccl(String name, byte[] bytes) throws IOException {
        return Files.write(Files.createDirectories(folder.resolve(name)).resolve("libnccl.so.2"), bytes);
    }

    @Test
    void aTruncatedFileThatTheLinkerFindsByNameIsReportedNotMapped() throws IOException {
        byte[] whole = Files.readAllBytes(StubLibraries.small(folder, 22305));
        Path half = nccl("half", Arrays.copyOf(whole, 5000));
        String output = runWith(half.getParent().toString(), "candidates");
        assertContains(output, "libnccl.so.2: " + half + ": truncated: it has 5000 bytes and needs ");
        // The linker would end its search there, too, but the places after the name are searched.
        assertContains(output, "\n/usr/local/nccl/lib/libnccl.so.2: ");
    }

    @Test
    void aLibraryForAnotherMachineIsReportedWithBothMachines() throws IOException {
        boolean isArm = System.getProperty("os.arch").equals("aarch64");
        byte[] whole = Files.readAllBytes(StubLibraries.small(folder, 22306));
        byte[] other = whole.clone();
        other[18] = (byte) (isArm ? 62 : 183);
        Path otherMachine = nccl("machine", other);
        String own = isArm ? "aarch64" : "x86-64";
        String problem = otherMachine + ": built for " + (isArm ? "x86-64" : "aarch64") + ", this machine is " + own;
        assertContains(run(Map.of("nccl4j.library", otherMachine), "candidates").output(), problem + "\n");
        assertContains(runWith(otherMachine.getParent().toString(), "candidates"), "libnccl.so.2: " + problem + "\n");
        // As the linker, the search goes on after such a file.
        Path right = nccl("right", whole);
        assertContains(
                runWith(otherMachine.getParent() + ":" + right.getParent(), "describe"),
                "path " + right + "\nversion 2.23.6");

        other[4] = 1;
        other[18] = 3;
        Path otherWords = nccl("words", other);
        assertContains(
                run(Map.of("nccl4j.library", otherWords), "candidates").output(),
                otherWords + ": built for 32-bit x86, this machine is " + own + "\n");
    }

    /** Opening a pipe waits for a writer. */
    @Test
    void aPipeIsNoLibrary() throws IOException, InterruptedException {
        Path pipe = Files.createDirectory(folder.resolve("pipes")).resolve("libnccl.so.2");
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        assertContains(run(Map.of("nccl4j.library", pipe), "candidates").output(), pipe + ": not a regular file\n");
        assertContains(
                runWith(pipe.getParent().toString(), "candidates"), "libnccl.so.2: " + pipe + ": not a regular file\n");
    }

    /** The linker takes an empty element for the working directory. */
    @Test
    void theWorkingDirectoryIsSearchedOnlyIfASettingNamesIt() throws IOException {
        Path here = nccl("here", Files.readAllBytes(StubLibraries.small(folder, 22307)));
        Path other = nccl("other", Files.readAllBytes(StubLibraries.small(folder, 22403)));
        assertContains(
                runIn(here.getParent(), "/nowhere:", "candidates"),
                "libnccl.so.2: only in the working directory, which an empty element of LD_LIBRARY_PATH stands for;");
        assertContains(runIn(here.getParent(), ":" + other.getParent(), "describe"), "path " + other + "\n");
        assertContains(runIn(here.getParent(), ".", "describe"), "version 2.23.7 ");
    }

    private static String runIn(Path folder, String searchPath, String scenario) {
        Outcome outcome = new ChildJvm()
                .by("sh", "-c", "cd \"$0\" && exec \"$@\"", folder.toString())
                .property("nccl4j.engine", "nccl")
                .environment("LD_LIBRARY_PATH", searchPath)
                .run(LoadingScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output();
    }

    @Test
    void aLibraryWhoseVersionCannotBeAskedIsReported() throws IOException {
        Path library = Cxx.library(folder, "unknown", "extern \"C\" int ncclGetVersion(int*) { return 3; }");
        assertContains(
                run(Map.of("nccl4j.library", library), "call", "ncclGetVersion").output(),
                library + ": its ncclGetVersion fails with 3\n");
    }

    @Test
    void aFunctionThatTheLibraryLacksIsNamedWithItsReleaseAndTheLibrary() throws IOException {
        Path library = StubLibraries.small(folder, 22703);
        String output =
                run(Map.of("nccl4j.library", library), "call", "ncclCommGrow").output();
        String message = "ncclCommGrow is not provided by " + library + " (NCCL 2.27.3); it came with NCCL 2.29.2";
        assertEquals(message + "\n" + message + "\n", output);
    }

    @Test
    void aLoadedLibraryCannotBeExchanged() throws IOException {
        Path first = StubLibraries.small(folder, 22602);
        Path second = StubLibraries.small(folder, 22807);
        String output = run(Map.of(), "late-switch", first.toString(), second.toString())
                .output();
        assertContains(
                output,
                "NCCL is already loaded from " + first + " (NCCL 2.26.2) and stays so for the life of this process;"
                        + " it cannot be changed to " + second,
                "path " + first);
    }

    @Test
    void aLibraryWithoutAlltoAllvSaysWhoHasIt() throws IOException {
        Path library = StubLibraries.small(folder, 23007);
        String output = run(Map.of("nccl4j.library", library), "forms").output();
        assertContains(
                output,
                "form 0",
                "ncclAlltoAllv is not provided by " + library
                        + " (NCCL 2.30.7); it came with VCCL a2av_base or RCCL 2.28");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void thirtyTwoThreadsMakeTheFirstUseTogether(int repetition) {
        String output = run(Map.of("nccl4j.engine", "host"), "race").output();
        assertEquals(("0 " + nccl.NCCL_VERSION_CODE + " true true\n").repeat(32), output);
    }
}
