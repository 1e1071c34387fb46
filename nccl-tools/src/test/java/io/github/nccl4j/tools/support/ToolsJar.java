package io.github.nccl4j.tools.support;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The jar with all dependencies, as users run it, in JVMs with options for a fast start. */
public final class ToolsJar {
    /** The path of the jar, relative to the module's folder. */
    public static final String PATH = "target/nccl4j-tools.jar";

    /** Only the fast compiler. */
    private static final String QUICK = "-XX:TieredStopAtLevel=1";

    private ToolsJar() {}

    /**
     * Creates a process for a command of nccl4j, without the NCCL variables of this process, with standard error redirected to
     * standard output.
     *
     * @param arguments the arguments of nccl4j, beginning with the command
     * @return the process, not started
     */
    public static ProcessBuilder command(List<String> arguments) {
        List<String> command = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(List.of("-XX:+UseSerialGC", QUICK, "-XX:-UsePerfData"));
        ClassArchive.of(PATH)
                .ifPresent(
                        file -> command.addAll(List.of("-XX:SharedArchiveFile=" + file, "-Dnccl4j.classes=" + file)));
        // Two checkouts have jars of one name.
        String cache = System.getProperty("org.bytedeco.javacpp.cachedir");
        if (cache != null) {
            command.add("-Dorg.bytedeco.javacpp.cachedir=" + cache);
        }
        command.addAll(List.of("-jar", PATH));
        command.addAll(arguments);
        switch (arguments.get(0)) {
            case "run" -> {
                // A program's command has its own options.
                if (!arguments.contains("--")) {
                    command.add("-J" + QUICK);
                }
            }
            case "perf" -> command.add("--jvm=" + QUICK);
            default -> {
                // Other commands start few ranks or none.
            }
        }
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL"));
        return builder;
    }
}
