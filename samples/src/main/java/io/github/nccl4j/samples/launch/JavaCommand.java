package io.github.nccl4j.samples.launch;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Builds the command line of a rank's JVM: this JVM's {@code java} and class path, quick start, no files left behind. */
public final class JavaCommand {

    /** What the launcher decides for all ranks and passes in the environment instead. */
    private static final Set<String> NOT_FORWARDED = Set.of(
            "nccl4j.engine",
            "nccl4j.library",
            "nccl4j.rank",
            "nccl4j.worldSize",
            "nccl4j.localRank",
            "nccl4j.localWorldSize",
            "nccl4j.masterAddress",
            "nccl4j.masterPort",
            LauncherWatch.PROPERTY,
            LauncherWatch.OUTER);

    private JavaCommand() {}

    /**
     * The command that runs a class of this class path in a JVM of its own.
     *
     * <p>System properties whose name begins with {@code nccl4j.} or {@code org.bytedeco.} are handed on, except those that choose
     * the library, which the launcher decides once for all ranks, and those that say which rank a process is.
     *
     * @param jvmOptions further options of the JVM
     * @param mainClass the class to run
     * @param arguments its arguments
     * @return the command, program first
     */
    public static List<String> of(List<String> jvmOptions, String mainClass, List<String> arguments) {
        String launcher = LauncherWatch.PROPERTY + "=" + ProcessHandle.current().pid();
        return of(launcher, jvmOptions, mainClass, arguments);
    }

    /**
     * As {@link #of(List, String, List)}, for another launcher than ours, which tells each process its rank.
     *
     * @param jvmOptions further options of the JVM
     * @param mainClass the class to run
     * @param arguments its arguments, in which a number of ranks to launch means nothing
     * @return the command, program first
     */
    public static List<String> ofOuterLauncher(List<String> jvmOptions, String mainClass, List<String> arguments) {
        return of(LauncherWatch.OUTER + "=true", jvmOptions, mainClass, arguments);
    }

    private static List<String> of(String launcher, List<String> jvmOptions, String mainClass, List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + "/bin/java");
        // perf data would stay in /tmp/hsperfdata_* when a rank is killed
        command.add("-XX:-UsePerfData");
        // a rank keeps next to nothing on the heap: no need for a collector with a thread per core in each of them
        command.add("-XX:+UseSerialGC");
        // which stays below the 32 GB above which a JVM starts slower; -Xmx in the options goes before it
        command.add("-XX:MaxRAM=64g");
        command.add("--enable-native-access=ALL-UNNAMED");
        command.add("-D" + launcher);
        // The launcher's own classes are those of its ranks.
        String classes = System.getProperty("nccl4j.classes");
        if (classes != null) {
            command.add("-XX:SharedArchiveFile=" + classes);
        }
        command.addAll(forwarded(System.getProperties()));
        command.addAll(jvmOptions);
        command.add("-cp");
        command.add(absolute(System.getProperty("java.class.path")));
        command.add(mainClass);
        command.addAll(arguments);
        return command;
    }

    static List<String> forwarded(Properties properties) {
        return new TreeSet<>(properties.stringPropertyNames())
                .stream()
                        .filter(name -> name.startsWith("nccl4j.") || name.startsWith("org.bytedeco."))
                        .filter(name -> !NOT_FORWARDED.contains(name))
                        .map(name -> "-D" + name + "=" + properties.getProperty(name))
                        .toList();
    }

    private static String absolute(String classPath) {
        return Stream.of(classPath.split(File.pathSeparator))
                .map(JavaCommand::absoluteEntry)
                .collect(Collectors.joining(File.pathSeparator));
    }

    private static String absoluteEntry(String entry) {
        // Not Path.of, which refuses what the locale cannot spell; Java passes such entries over.
        return new File(entry).getAbsolutePath();
    }
}
