package io.github.nccl4j.tools.support;

import io.github.nccl4j.tools.SharedClasses;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;

/**
 * Class data archives, which speed up the start of the JVMs that tests launch. The folder {@code target} keeps an archive until
 * its jars change, so that all test JVMs of a module use the same one. Thread-safe.
 */
public final class ClassArchive {
    /** Archives by class path; guarded by the class. */
    private static final Map<String, Optional<Path>> ARCHIVES = new HashMap<>();

    private ClassArchive() {}

    /**
     * Returns the archive for a class path.
     *
     * @param classPath a prefix of the class path of the JVMs that use the archive; only jars
     * @return the archive; empty if this Java would print warnings about it
     */
    public static synchronized Optional<Path> of(String classPath) {
        // Newer releases print errors when an archive is combined with --enable-native-access, which JavaCPP needs.
        return Runtime.version().feature() > 21
                ? Optional.empty()
                : ARCHIVES.computeIfAbsent(classPath, ClassArchive::findOrCreate);
    }

    private static Optional<Path> findOrCreate(String classPath) {
        try {
            Path folder = Files.createDirectories(Path.of("target", "classes-archive"))
                    .toAbsolutePath();
            String prefix = UUID.nameUUIDFromBytes(classPath.getBytes(StandardCharsets.UTF_8)) + "-";
            Path archive = folder.resolve(prefix + state(classPath) + ".jsa");
            // The first test JVM creates the archive; the others wait for it.
            try (FileChannel lock =
                    FileChannel.open(folder.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                lock.lock();
                if (!Files.exists(archive)) {
                    deleteAll(folder, prefix);
                    create(classPath, archive);
                }
            }
            return Optional.of(archive).filter(Files::exists);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Identifies the contents of the jars, and the Java: HotSpot rejects an archive if one of them differs. */
    private static UUID state(String classPath) throws IOException {
        StringBuilder state = new StringBuilder(System.getProperty("java.vm.version"));
        for (String entry : classPath.split(File.pathSeparator)) {
            Path jar = Path.of(entry);
            state.append('\n').append(Files.size(jar)).append(' ').append(Files.getLastModifiedTime(jar));
        }
        return UUID.nameUUIDFromBytes(state.toString().getBytes(StandardCharsets.UTF_8));
    }

    private static void deleteAll(Path folder, String prefix) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, prefix + "*")) {
            for (Path file : files) {
                Files.delete(file);
            }
        }
    }

    private static void create(String classPath, Path archive) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:-UsePerfData",
                "-cp",
                classPath,
                SharedClasses.class.getName(),
                archive.toString());
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL"));
        builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD);
        ChildProcesses.start(builder).waitFor();
    }
}
