package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.bytedeco.javacpp.BytePointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where JavaCPP cannot unpack native code, or not load it, the error names the folder, the reason and the property. */
class CacheFolderTest {
    @TempDir
    Path temporary;

    /** What programs do first. */
    static final class FirstUse {
        public static void main(String... args) {
            try {
                if (args.length > 1) {
                    new BytePointer(1).close();
                }
                switch (args[0]) {
                    case "library" -> System.out.println(NativeLibrary.path());
                    case "buffer" -> Device.host().allocate(ElementType.FLOAT32, 4);
                    default -> UniqueId.create();
                }
                System.out.println("no failure");
            } catch (NcclLibraryException e) {
                System.out.println(e.getMessage());
            }
        }
    }

    /** Each way to ask for the native code fails with the reason. */
    static final class EachUse {
        public static void main(String... args) {
            List<Runnable> uses = List.of(
                    NativeLibrary::path,
                    NativeLibrary::versionCode,
                    NativeLibrary::version,
                    NativeLibrary::engine,
                    () -> NativeLibrary.provides("ncclSend"),
                    () -> NativeLibrary.release("ncclSend"),
                    NativeLibrary::alltoAllvArguments,
                    NativeLibrary::isVccl,
                    NativeLibrary::otherCopies,
                    () -> NativeLibrary.wasCalled("ncclSend"),
                    NativeLibrary::isLoaded,
                    NativeLibrary::candidates,
                    () -> NativeLibrary.use("libnccl.so.2"),
                    () -> NativeLibrary.use(Engine.HOST),
                    () -> NativeLibrary.setVariable("NCCL_DEBUG", "INFO"),
                    () -> NativeLibrary.unpack(NativeLibrary.class),
                    NativeLibrary::gpuCount);
            for (int i = 0; i < uses.size(); i++) {
                try {
                    uses.get(i).run();
                    System.out.println(i + ": no failure");
                } catch (RuntimeException | LinkageError e) {
                    if (!(e instanceof NcclLibraryException)) {
                        System.out.println(i + ": " + e);
                    }
                }
            }
        }
    }

    @Test
    void everyFunctionFailsWithTheReason() {
        ChildJvm.Outcome outcome = jvm(Path.of("/proc/self"))
                .property("java.io.tmpdir", "/proc/self")
                .run(EachUse.class);
        assertEquals("", outcome.output());
    }

    private static String run(Path cache, String use, String... prefix) {
        return run(new ChildJvm().by(prefix).property("org.bytedeco.javacpp.cachedir", cache), use);
    }

    private static String run(ChildJvm jvm, String use) {
        ChildJvm.Outcome outcome = jvm.property("nccl4j.engine", "host").run(FirstUse.class, use);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output();
    }

    private static void assertTells(String output, String folder, String reason) {
        assertTrue(
                output.matches("(?s)nccl4j's native code cannot be loaded: .*" + reason
                        + ".* JavaCPP unpacks it into its cache \\(" + folder
                        + "\\), which must be writable, .* the system property org.bytedeco.javacpp.cachedir\n"),
                output);
    }

    /** JavaCPP has two other folders. */
    @ParameterizedTest
    @ValueSource(strings = {"library", "buffer", "id"})
    void noFolderThatCanBeWritten(String use) {
        // Nobody can write there, root included.
        ChildJvm jvm = new ChildJvm();
        for (String folder : List.of("org.bytedeco.javacpp.cachedir", "user.home", "java.io.tmpdir")) {
            jvm.property(folder, "/proc/self");
        }
        assertTells(run(jvm, use), "none could be made", "no folder can be used \\(.*/proc/self/.javacpp/cache: .*");
    }

    /** A JVM whose natives go to a folder, and which has no other choice but the temporary folder. */
    private ChildJvm jvm(Path cache) {
        return new ChildJvm()
                .property("org.bytedeco.javacpp.cachedir", cache)
                .property("user.home", "/proc/self")
                .property("java.io.tmpdir", temporary)
                .property("user.name", "me");
    }

    /** Whoever can write the folder above decides what lies below. */
    @Test
    void aFolderThatOthersCanReplaceIsNotUsed() throws IOException {
        Path open = Files.createDirectory(temporary.resolve("open"));
        Path cache = Files.createDirectory(open.resolve("cache"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        String output = run(jvm(cache), "library");
        assertTrue(output.contains(cache + ": other users can write " + open + " (mode 777)"), output);
        // JavaCPP's third choice, as this user's home cannot be written.
        assertTrue(output.contains("\n" + temporary + "/.javacpp-me/cache/"), output);
        assertEquals(List.of(), entries(cache));
    }

    @Test
    void aFolderOfAnotherUserIsNotUsedButOneForThisProcessOnly() throws IOException {
        Path other = Files.createDirectory(temporary.resolve(".javacpp-me"));
        try {
            Files.setAttribute(other, "unix:uid", 4711);
        } catch (IOException denied) {
            assumeTrue(false, "only root can give a folder to another user");
        }
        String output = run(jvm(Path.of("/proc/self/cache")), "library");
        assertTrue(output.contains(other + " belongs to another user (4711)"), output);
        assertTrue(output.contains("\n" + temporary + "/nccl4j-"), output);
        assertEquals(List.of(other), entries(temporary));
    }

    /** As it is for a user with umask 002. */
    @Test
    void aFolderOfThisUserIsClosedForOthers() throws IOException {
        Path cache = Files.createDirectories(temporary.resolve(".javacpp/cache"));
        for (Path folder : List.of(cache, cache.getParent())) {
            Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxr-x"));
        }
        String output = run(jvm(cache), "library");
        assertTrue(output.startsWith(cache.toString()), output);
        for (Path folder : List.of(cache, cache.getParent())) {
            assertEquals("rwxr-xr-x", PosixFilePermissions.toString(Files.getPosixFilePermissions(folder)));
        }
    }

    /** Jars of two builds may have files of the same size and time. */
    @ParameterizedTest
    @ValueSource(strings = {"libjninccl4j.so", "libjnijavacpp.so", "libnccl4j_host.so"})
    void aFileWithOtherContentsIsReplaced(String name) throws IOException {
        run(jvm(temporary.resolve("cache")), "library");
        Path file = find(name);
        byte[] whole = Files.readAllBytes(file);
        FileTime time = Files.getLastModifiedTime(file);
        byte[] other = whole.clone();
        Arrays.fill(other, (byte) 0);
        Files.write(file, other);
        Files.setLastModifiedTime(file, time);
        String output = run(jvm(temporary.resolve("cache")), "library");
        assertTrue(output.contains("libnccl4j_host.so"), output);
        assertArrayEquals(whole, Files.readAllBytes(file));
        assertEquals(time, Files.getLastModifiedTime(file));
    }

    private Path find(String name) throws IOException {
        try (Stream<Path> files = Files.walk(temporary)) {
            return files.filter(file -> file.endsWith(name)).findFirst().orElseThrow();
        }
    }

    private static List<Path> entries(Path folder) throws IOException {
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.toList();
        }
    }

    /** JavaCPP keeps the folder of its first use. */
    @Test
    void anOpenFolderThatJavaCppAlreadyUsesIsNamed() throws IOException {
        Path open = Files.createDirectory(temporary.resolve("open"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        ChildJvm.Outcome outcome = jvm(open.resolve("cache"))
                .property("nccl4j.engine", "host")
                .run(FirstUse.class, "library", "after JavaCPP");
        assertTrue(
                outcome.output()
                        .contains("nccl4j's native code cannot be loaded: other users can write " + open
                                + " (mode 777). The program has used JavaCPP before nccl4j. "),
                outcome.output());
    }

    /** The home of a user whom the system does not know is "?". */
    @Test
    void theWorkingDirectoryIsNoPlace() throws IOException {
        ChildJvm jvm = jvm(Path.of("/proc/self/cache")).property("user.home", "?");
        assertTrue(run(jvm, "library").startsWith(temporary + "/.javacpp-me/cache/"));
    }

    @Test
    void aFileThatCannotBeWrittenToItsEnd() {
        String output = run(temporary, "id", "sh", "-c", "ulimit -f 64; exec \"$@\"", "sh");
        assertTells(output, temporary.toString(), "File too large");
    }

    @Test
    void aCommandAndItsRanksPrintTheMessageOnly() {
        String output = new ChildJvm()
                .by("sh", "-c", "ulimit -f 64; exec \"$@\"", "sh")
                .property("org.bytedeco.javacpp.cachedir", temporary)
                .environment("NCCL4J_ENGINE", "host")
                .run("io.github.nccl4j.tools.Main", "perf", "all_reduce", "-b", "8", "-e", "8", "-n", "2")
                .output();
        assertTrue(output.contains("nccl4j: nccl4j's native code cannot be loaded: File too large. "), output);
        assertFalse(output.contains("\tat "), output);
    }

    @Test
    void aFullDisk() throws IOException, InterruptedException {
        mounted("size=64k", disk -> {
            assertTells(run(disk, "id"), disk.toString(), "No space left on device");
            assertTells(run(disk, "buffer"), disk.toString(), "No space left on device");
        });
    }

    @Test
    void aDiskThatIsMountedNoexec() throws IOException, InterruptedException {
        mounted("noexec", disk -> assertTells(run(disk, "id"), disk.toString(), "failed to map segment"));
    }

    private interface OnDisk {
        void test(Path disk) throws IOException;
    }

    private void mounted(String options, OnDisk body) throws IOException, InterruptedException {
        Path disk = Files.createDirectory(temporary.resolve("disk"));
        String why = mount("mount", "-t", "tmpfs", "-o", options, "tmpfs", disk.toString());
        assumeTrue(why.isEmpty(), () -> "needs a small disk of its own, which only root can mount: " + why);
        try {
            body.test(disk);
        } finally {
            assertEquals("", mount("umount", disk.toString()));
        }
    }

    /** Why a command failed; empty if it did not. */
    private static String mount(String... command) throws InterruptedException {
        try {
            Process process = new ProcessBuilder(List.of(command))
                    .redirectErrorStream(true)
                    .start();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            return process.waitFor() == 0 ? "" : output.lines().findFirst().orElse(command[0] + " failed");
        } catch (IOException missing) {
            return missing.getMessage();
        }
    }
}
