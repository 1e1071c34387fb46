package io.github.nccl4j.samples.support;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The jar that has everything, as users run it, in JVMs that start fast: launchers and ranks compile quickly. */
public final class SamplesJar {
    /** Where the build puts it, seen from the module's folder. */
    public static final String PATH = "target/nccl4j-samples.jar";

    private static final String QUICK = "-XX:TieredStopAtLevel=1";

    private SamplesJar() {}

    /**
     * A command of nccl4j, without settings of this process' environment; errors go to the output.
     *
     * @param arguments those of nccl4j, its command first
     * @return how to start it
     */
    public static ProcessBuilder command(List<String> arguments) {
        List<String> command = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(List.of("-XX:+UseSerialGC", QUICK, "-XX:-UsePerfData"));
        ClassArchive.of(PATH)
                .ifPresent(
                        file -> command.addAll(List.of("-XX:SharedArchiveFile=" + file, "-Dnccl4j.classes=" + file)));
        command.addAll(List.of("-jar", PATH));
        command.addAll(arguments);
        switch (arguments.get(0)) {
            case "run" -> command.add("-J" + QUICK);
            case "perf" -> command.add("--jvm=" + QUICK);
            default -> {
                // Other commands start no ranks, or few.
            }
        }
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL"));
        return builder;
    }
}
