package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.NativeLibrary;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where JavaCPP cannot extract native code, or not load it, the error names the folder, the reason and the property. */
class CacheFolderTest {
    @TempDir
    Path temporary;

    /** What programs do first. */
    static final class FirstUse {
        public static void main(String... args) {
            try {
                switch (args[0]) {
                    case "library" -> NativeLibrary.version();
                    case "buffer" -> Device.host().allocate(ElementType.FLOAT32, 4);
                    default -> UniqueId.create();
                }
                System.out.println("no failure");
            } catch (UnsatisfiedLinkError e) {
                System.out.println(e.getMessage());
            }
        }
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
                        + ".* JavaCPP extracts it to its cache \\(" + folder
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
        assertTells(run(jvm, use), "none could be made", "Could not create the cache");
    }

    @Test
    void aFileThatCannotBeWrittenToItsEnd() {
        String output = run(temporary, "id", "sh", "-c", "ulimit -f 64; exec \"$@\"", "sh");
        assertTells(output, temporary.toString(), "File too large");
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
