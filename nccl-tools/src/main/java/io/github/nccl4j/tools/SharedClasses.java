package io.github.nccl4j.tools;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Creates a class data archive, which speeds up the start of the commands.
 *
 * <p>A JVM loads the classes of all commands, launches two ranks on the host engine, and then runs as a single rank, so that the
 * class lists of these JVMs contain all classes, and the hidden classes of lambdas. Another JVM archives them, with the classes of
 * the JDK: an archive on top of the JDK's own cannot contain picocli, which is compiled for Java 5.
 */
public final class SharedClasses {
    private static final List<String> PACKAGES = List.of(
            "io/github/nccl4j/",
            "org/bytedeco/javacpp/",
            "org/bytedeco/cuda/cudart/",
            "org/bytedeco/cuda/global/cudart",
            "org/bytedeco/cuda/presets/cudart",
            "picocli/");

    private static final String CLASS = ".class";
    private static final String LOAD = "--load";
    private static final String[] RANK = {"run", "01-all-reduce", "--engine", "host", "-e", "8"};
    /** The variables of the only rank of a job. */
    public static final Map<String, String> SINGLE_RANK = Map.of(
            "RANK", "0",
            "WORLD_SIZE", "1",
            "LOCAL_RANK", "0",
            "LOCAL_WORLD_SIZE", "1",
            "MASTER_ADDR", "127.0.0.1",
            "MASTER_PORT", "1");

    private SharedClasses() {}

    /**
     * Creates the archive, for JVMs with the class path of this one.
     *
     * @param args the path of the archive; or, in the JVM that loads the classes, {@code --load} and the path of its class list
     * @throws IOException if a file can't be read or written
     * @throws InterruptedException if this thread is interrupted
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        if (args[0].equals(LOAD)) {
            run(args[1]);
        } else {
            create(Path.of(args[0]).toAbsolutePath());
        }
    }

    private static void create(Path archive) throws IOException, InterruptedException {
        // Other processes may create the same archive at this moment; each moves a whole file.
        Path folder = Files.createTempDirectory(archive.getParent(), "classes-");
        Path list = folder.resolve("list");
        Path part = folder.resolve("part");
        try {
            java(
                    SINGLE_RANK,
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-XX:DumpLoadedClassList=" + list,
                    SharedClasses.class.getName(),
                    LOAD,
                    list.toString());
            Set<String> classes = new LinkedHashSet<>();
            // Each JVM that it starts writes its own list.
            try (DirectoryStream<Path> lists = Files.newDirectoryStream(folder)) {
                for (Path each : lists) {
                    classes.addAll(Files.readAllLines(each));
                }
            }
            Files.write(list, classes);
            // Only this collector archives objects; the others read them.
            java(
                    Map.of(),
                    "-XX:+UseG1GC",
                    "-Xshare:dump",
                    "-XX:SharedClassListFile=" + list,
                    "-XX:SharedArchiveFile=" + part);
            if (Files.exists(part)) {
                Files.move(part, archive, StandardCopyOption.ATOMIC_MOVE);
            }
        } finally {
            try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
                for (Path file : files) {
                    Files.delete(file);
                }
            }
            Files.delete(folder);
        }
    }

    /** Runs a JVM with the class path and the options of this one, but another collector. */
    private static void java(Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java"));
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(option -> !option.startsWith("-XX:+Use") && !option.startsWith("-XX:Tiered"))
                .forEach(command::add);
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(environment);
        builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD);
        ChildProcesses.start(builder).waitFor();
    }

    /** Loads the classes, then runs the commands. The last command ends this JVM. */
    private static void run(String list) throws IOException {
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (entry.endsWith(".jar")) {
                load(entry);
            }
        }
        String[] launch = {"startup", "-n", "2", "--engine", "host", "-J-XX:DumpLoadedClassList=" + list + ".%p"};
        Main.commandLine(launch).execute(launch);
        Main.main(RANK);
    }

    private static void load(String jar) throws IOException {
        try (ZipFile file = new ZipFile(jar)) {
            for (ZipEntry entry : (Iterable<ZipEntry>) file.stream().<ZipEntry>map(e -> e)::iterator) {
                String name = entry.getName();
                if (name.endsWith(CLASS) && PACKAGES.stream().anyMatch(name::startsWith)) {
                    load(name.substring(0, name.length() - CLASS.length()).replace('/', '.'), jar);
                }
            }
        }
    }

    private static void load(String name, String jar) {
        try {
            Class.forName(name, false, SharedClasses.class.getClassLoader());
        } catch (ClassNotFoundException | LinkageError e) {
            // Some classes of JavaCPP need jars that are absent here; the commands do not use these classes.
            if (Boolean.getBoolean("nccl4j.classes.verbose")) {
                System.err.println(jar + ": " + e);
            }
        }
    }
}
