package io.github.nccl4j.tools.launch;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.support.Programs;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The command of a user whose processes and threads are limited. The kernel does not limit root, so another user is necessary. */
class ThreadLimitTest {
    /** A user without other processes. */
    private static final String USER = "64123";

    @TempDir
    Path folder;

    @Test
    void reasonIsOneLineWhereverTheLauncherMeetsTheLimit() throws Exception {
        Programs.require("setpriv", "util-linux");
        Assumptions.assumeTrue(
                Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0), "needs root, for a user of its own");
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
        Path jar = Files.copy(Path.of("target/nccl4j-tools.jar"), folder.resolve("tools.jar"));
        Files.setPosixFilePermissions(jar, PosixFilePermissions.fromString("rw-r--r--"));
        List<String> reasons = new ArrayList<>();
        for (int limit = 16; limit <= 30; limit += 2) {
            String output = run(jar, limit);
            assertFalse(output.contains("at io.github.nccl4j"), limit + ": " + output);
            output.lines()
                    .filter(line -> line.matches("nccl4j: unable to create native thread.*\\(ulimit -u\\).*"))
                    .forEach(reasons::add);
        }
        assertTrue(reasons.size() >= 2, reasons.toString());
    }

    private String run(Path jar, int limit) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(
                "setpriv",
                "--reuid=" + USER,
                "--regid=" + USER,
                "--clear-groups",
                "bash",
                "-c",
                "ulimit -u " + limit + " && exec \"$0\" \"$@\"",
                System.getProperty("java.home") + "/bin/java",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-cp",
                jar.toString(),
                "io.github.nccl4j.tools.Main",
                "run",
                "00-sum",
                "-n",
                "2",
                "--engine",
                "host",
                "--timeout",
                "30");
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL"));
        builder.environment().put("HOME", "/");
        Process process =
                ChildProcesses.start(builder.directory(folder.toFile()).redirectErrorStream(true));
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return output;
    }
}
