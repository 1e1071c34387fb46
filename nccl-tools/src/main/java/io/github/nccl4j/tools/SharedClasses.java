package io.github.nccl4j.tools;

import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Prepares a class data archive, which speeds up the start of the commands.
 *
 * <p>Loads the classes of all commands, launches two ranks on the host engine, and then runs as a single rank, so that the class
 * lists of these JVMs ({@code -XX:DumpLoadedClassList}) contain all classes, and the hidden classes of lambdas, to archive.
 */
public final class SharedClasses {
    private static final List<String> PACKAGES = List.of(
            "io/github/nccl4j/highlevel/",
            "io/github/nccl4j/internal/",
            "io/github/nccl4j/library/",
            "io/github/nccl4j/launch/",
            "io/github/nccl4j/nccl/",
            "io/github/nccl4j/global/",
            "io/github/nccl4j/samples/",
            "io/github/nccl4j/tools/",
            "org/bytedeco/javacpp/",
            "org/bytedeco/cuda/cudart/",
            "org/bytedeco/cuda/global/cudart",
            "org/bytedeco/cuda/presets/cudart",
            "picocli/");

    private static final String[] RANK = {"run", "01-all-reduce", "--engine", "host", "-e", "8"};

    private SharedClasses() {}

    /**
     * Loads the classes, then runs the commands. The last command ends this JVM. The environment must describe a single rank.
     *
     * @param args the path of the class list; each launched rank appends its process id to the name of its own list
     * @throws IOException if a jar can't be read
     */
    public static void main(String[] args) throws IOException {
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (entry.endsWith(".jar")) {
                load(entry);
            }
        }
        String[] launch = {
            "startup", "-n", "2", "--engine", "host", "-J-XX:DumpLoadedClassList=" + args[0] + ".%p",
        };
        Main.commandLine(launch).execute(launch);
        Main.main(RANK);
    }

    private static void load(String jar) throws IOException {
        try (ZipFile file = new ZipFile(jar)) {
            for (ZipEntry entry : (Iterable<ZipEntry>) file.stream().<ZipEntry>map(e -> e)::iterator) {
                String name = entry.getName();
                if (name.endsWith(".class") && PACKAGES.stream().anyMatch(name::startsWith)) {
                    load(name.substring(0, name.length() - ".class".length()).replace('/', '.'), jar);
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
