package io.github.nccl4j.samples.support;

import io.github.nccl4j.samples.launch.ChildProcesses;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The classes of a rank, archived for the JVMs that tests start, which then take a third less time. Each JVM that runs tests
 * makes its own archive at the first use, in a second.
 */
public final class ClassArchive {
    private static final Map<String, Optional<Path>> MADE = new ConcurrentHashMap<>();

    private ClassArchive() {}

    /**
     * The archive for a class path.
     *
     * @param classPath the beginning of the class path of the JVMs that use the archive; has jars alone, the samples' among them
     * @return the file; nothing if this Java cannot archive classes without a word
     */
    public static Optional<Path> of(String classPath) {
        return MADE.computeIfAbsent(classPath, ClassArchive::make);
    }

    private static Optional<Path> make(String classPath) {
        // A newer Java prints errors when an archive is used with --enable-native-access, which JavaCPP needs.
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
                    "io.github.nccl4j.samples.Main",
                    "run",
                    "01-all-reduce",
                    "--engine",
                    "host",
                    "-e",
                    "8"));
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
            boolean made = ChildProcesses.start(rank).waitFor() == 0 && Files.size(file) > 0;
            return made ? Optional.of(file) : Optional.empty();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
