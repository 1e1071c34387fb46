package io.github.nccl4j.benchmarks;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;

/** Runs programs. */
final class CommandLine {
    private CommandLine() {}

    /** The output of a program; its errors go to the errors of this process. */
    static String output(Path folder, List<String> command) throws IOException {
        Process process = ChildProcesses.start(
                new ProcessBuilder(command).directory(folder.toFile()).redirectError(ProcessBuilder.Redirect.INHERIT));
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        try {
            int code = process.waitFor();
            if (code != 0) {
                throw new IOException(String.join(" ", command) + " exited with " + code + "\n" + output);
            }
        } catch (InterruptedException e) {
            ChildProcesses.kill(process);
            throw new IOException("interrupted while it ran: " + String.join(" ", command), e);
        }
        return output;
    }
}
