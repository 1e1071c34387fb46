package io.github.nccl4j.tools.support;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Class data archives, which speed up the start of the JVMs that tests launch. Each test JVM creates its own archive on
 * first use. Thread-safe.
 */
public final class ClassArchive {
    private static final Map<String, Optional<Path>> ARCHIVES = new ConcurrentHashMap<>();

    private ClassArchive() {}

    /**
     * Returns the archive for a class path.
     *
     * @param classPath a prefix of the class path of the JVMs that use the archive; only jars, including that of the samples
     * @return the archive; empty if this Java would print warnings about it
     */
    public static Optional<Path> of(String classPath) {
        return ARCHIVES.computeIfAbsent(classPath, ClassArchive::create);
    }

    private static Optional<Path> create(String classPath) {
        // Newer releases print errors when an archive is combined with --enable-native-access, which JavaCPP needs.
        if (Runtime.version().feature() > 21) {
            return Optional.empty();
        }
        try {
            Path file = Files.createTempFile(Files.createDirectories(Path.of("target")), "classes", ".jsa")
                    .toAbsolutePath();
            file.toFile().deleteOnExit();
            ProcessBuilder rank = new ProcessBuilder(List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-XX:-UsePerfData",
                    "-XX:ArchiveClassesAtExit=" + file,
                    "-cp",
                    classPath,
                    "io.github.nccl4j.tools.Main",
                    "startup",
                    "--engine",
                    "host"));
            rank.environment().keySet().removeIf(name -> name.startsWith("NCCL"));
            rank.environment()
                    .putAll(Map.of(
                            "RANK", "0",
                            "WORLD_SIZE", "1",
                            "LOCAL_RANK", "0",
                            "LOCAL_WORLD_SIZE", "1",
                            "MASTER_ADDR", "127.0.0.1",
                            "MASTER_PORT", "1"));
            rank.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD);
            boolean created = ChildProcesses.start(rank).waitFor() == 0 && Files.size(file) > 0;
            return created ? Optional.of(file) : Optional.empty();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
