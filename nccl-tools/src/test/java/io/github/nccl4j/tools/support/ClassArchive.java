package io.github.nccl4j.tools.support;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Class data archives, which speed up the start of the JVMs that tests launch. The folder {@code target} keeps an archive until
 * its jars change, so that all test JVMs of a module use the same one. Thread-safe.
 *
 * <p>The archives include the classes of the JDK. An archive on top of the JDK's own cannot contain the classes of picocli, which
 * are compiled for Java 5, and contains only classes that the program has loaded when the archive is written.
 */
public final class ClassArchive {
    private static final String OWN_CLASSES = "io/github/nccl4j/";
    private static final String CLASS = ".class";

    /** The variables of the only rank of a job. */
    public static final Map<String, String> SINGLE_RANK = Map.of(
            "RANK", "0",
            "WORLD_SIZE", "1",
            "LOCAL_RANK", "0",
            "LOCAL_WORLD_SIZE", "1",
            "MASTER_ADDR", "127.0.0.1",
            "MASTER_PORT", "1");

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
                    create(classPath, folder, prefix, archive);
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

    private static void create(String classPath, Path folder, String prefix, Path archive)
            throws IOException, InterruptedException {
        Path list = folder.resolve(prefix + "list");
        run(
                classPath,
                SINGLE_RANK,
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:DumpLoadedClassList=" + list,
                "io.github.nccl4j.tools.SharedClasses",
                list.toString());
        Set<String> classes = new LinkedHashSet<>();
        // Each JVM that it starts writes its own list.
        try (DirectoryStream<Path> lists = Files.newDirectoryStream(folder, prefix + "list*")) {
            for (Path each : lists) {
                classes.addAll(Files.readAllLines(each));
            }
        }
        for (String entry : classPath.split(File.pathSeparator)) {
            classes.addAll(ownClasses(entry));
        }
        Files.write(list, classes);
        Path part = folder.resolve(prefix + "part");
        // Only this collector archives objects; the others read them.
        run(
                classPath,
                Map.of(),
                "-XX:+UseG1GC",
                "-Xshare:dump",
                "-XX:SharedClassListFile=" + list,
                "-XX:SharedArchiveFile=" + part);
        deleteAll(folder, prefix + "list");
        if (Files.exists(part)) {
            Files.move(part, archive, StandardCopyOption.ATOMIC_MOVE);
        }
    }

    /** The names of the classes of nccl4j in a jar, as in a class list. */
    private static List<String> ownClasses(String jar) throws IOException {
        try (ZipFile file = new ZipFile(jar)) {
            return file.stream()
                    .map(ZipEntry::getName)
                    .filter(name -> name.startsWith(OWN_CLASSES) && name.endsWith(CLASS))
                    .map(name -> name.substring(0, name.length() - CLASS.length()))
                    .toList();
        }
    }

    private static void run(String classPath, Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:-UsePerfData",
                "-cp",
                classPath));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL"));
        builder.environment().putAll(environment);
        builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD);
        ChildProcesses.start(builder).waitFor();
    }
}
