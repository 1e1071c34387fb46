package io.github.nccl4j.tests.launch;

import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.opentest4j.TestAbortedException;

/** The link of a host to its network, as a process that copies frames between two TAP devices, and delays and loses some. */
final class DisturbedLink implements AutoCloseable {
    private final Process process;
    private final BufferedReader output;

    private DisturbedLink(Process process) {
        this.process = process;
        output = process.inputReader(StandardCharsets.UTF_8);
    }

    /** Compiles the program of all links. */
    static Path compile(Path folder) throws IOException {
        try (InputStream source = DisturbedLink.class.getResourceAsStream("link.cpp")) {
            String text = new String(source.readAllBytes(), StandardCharsets.UTF_8);
            return Cxx.program(folder, "link", text, Cxx.warnings().toArray(String[]::new));
        }
    }

    /**
     * Creates the device eth0 of a host, and its port of a network; skips the test if the system has no TAP devices.
     *
     * @param host the namespace of the host
     * @param network the namespace of the network
     */
    static DisturbedLink start(
            Path program, String host, String network, String port, Disturbance disturbance, long seed)
            throws IOException {
        List<String> command = new ArrayList<>(List.of(program.toString(), host, "eth0", network, port));
        command.addAll(List.of(
                "" + disturbance.delayMillis(),
                "" + disturbance.jitterMillis(),
                "" + disturbance.lossPercent(),
                "" + seed));
        DisturbedLink link =
                new DisturbedLink(ChildProcesses.start(new ProcessBuilder(command).redirectErrorStream(true)));
        String answer = link.output.readLine();
        if (!"ready".equals(answer)) {
            link.close();
            throw new TestAbortedException("needs netem in the kernel, or TAP devices: " + answer);
        }
        return link;
    }

    /** Delivers nothing from now on. Returns the number of frames that were lost before. */
    long cut() throws IOException {
        Writer commands = process.outputWriter(StandardCharsets.UTF_8);
        commands.write("cut\n");
        commands.flush();
        String answer = output.readLine();
        return Long.parseLong(answer.replaceAll("cut: (\\d+) of \\d+ frames were lost", "$1"));
    }

    @Override
    public void close() {
        ChildProcesses.kill(process);
    }
}
