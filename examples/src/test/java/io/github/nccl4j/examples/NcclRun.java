package io.github.nccl4j.examples;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A finished {@code nccl4j run} on the host engine. */
record NcclRun(int code, String output) {
    static final String JAVA =
            Path.of(System.getProperty("java.home"), "bin", "java").toString();
    static final String CLASSES = System.getProperty("java.class.path");
    static final String CACHE =
            "-Dorg.bytedeco.javacpp.cachedir=" + System.getProperty("org.bytedeco.javacpp.cachedir");

    static NcclRun of(List<String> arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(
                List.of(JAVA, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", CACHE));
        command.addAll(List.of("-Dnccl4j.leaks=true", "-cp", CLASSES));
        command.addAll(List.of("io.github.nccl4j.tools.Main", "run", "--engine", "host"));
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL"));
        Process process = ChildProcesses.start(builder);
        try (InputStream stream = process.getInputStream()) {
            String output = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
            return new NcclRun(process.waitFor(), output);
        }
    }
}
