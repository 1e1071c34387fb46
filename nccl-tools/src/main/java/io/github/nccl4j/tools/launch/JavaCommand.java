package io.github.nccl4j.tools.launch;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Builds the command line of a rank's JVM: this JVM's {@code java} and class path, and options for a fast start. */
public final class JavaCommand {

    /** The launcher decides these for all ranks and passes them in the environment. */
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
     * Builds the command that runs a class of this JVM's class path in a new JVM, as a rank of {@link Launcher}.
     *
     * <p>System properties whose name begins with {@code nccl4j.} or {@code org.bytedeco.} are passed on, except those that choose
     * the library, which the launcher decides once for all ranks, and those that identify the rank.
     *
     * @param jvmOptions additional options of the JVM
     * @param mainClass the class to run
     * @param arguments its arguments
     * @return the command, program first
     */
    public static List<String> of(List<String> jvmOptions, String mainClass, List<String> arguments) {
        String launcher = LauncherWatch.PROPERTY + "=" + ProcessHandle.current().pid();
        return of(launcher, jvmOptions, mainClass, arguments);
    }

    /**
     * As {@link #of(List, String, List)}, for a process that another launcher, such as mpirun, starts.
     *
     * @param jvmOptions additional options of the JVM
     * @param mainClass the class to run
     * @param arguments its arguments; an option for the number of ranks is ignored there
     * @return the command, program first
     */
    public static List<String> ofOuterLauncher(List<String> jvmOptions, String mainClass, List<String> arguments) {
        return of(LauncherWatch.OUTER + "=true", jvmOptions, mainClass, arguments);
    }

    private static List<String> of(String launcher, List<String> jvmOptions, String mainClass, List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("java.home") + "/bin/java");
        // A killed rank would leave its performance data in /tmp/hsperfdata_*.
        command.add("-XX:-UsePerfData");
        // The heap of a rank is small: avoid collector threads, one per core, in every rank.
        command.add("-XX:+UseSerialGC");
        // Limits the default heap to 16 GB: above 32 GB a JVM starts slower. -Xmx in jvmOptions takes precedence.
        command.add("-XX:MaxRAM=64g");
        if (Runtime.version().feature() >= 24) {
            // Only newer JVMs print warnings without it. Older ones read archived classes slowly with it: 10 to 30 ms a
            // start.
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.add("-D" + launcher);
        // The class data archive of this JVM fits its ranks: they have the same class path.
        String archive = System.getProperty("nccl4j.classes");
        if (archive != null) {
            command.add("-XX:SharedArchiveFile=" + archive);
        }
        command.addAll(forwardedProperties(System.getProperties()));
        command.addAll(jvmOptions);
        command.add("-cp");
        command.add(absolute(System.getProperty("java.class.path")));
        command.add(mainClass);
        command.addAll(arguments);
        return command;
    }

    /** The properties to pass on as {@code -D} options, sorted by name. */
    static List<String> forwardedProperties(Properties properties) {
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
        // Not Path.of, which throws for names that the locale cannot encode; the JVM ignores such entries.
        return new File(entry).getAbsolutePath();
    }
}
