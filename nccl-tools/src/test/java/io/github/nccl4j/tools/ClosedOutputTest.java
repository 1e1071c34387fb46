package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.launch.OutputWatch;
import io.github.nccl4j.tools.support.MarkedProcesses;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A command that runs forever ends when the reader of its output closes the pipe, as in {@code nccl4j perf -N 0 | head}. */
@Timeout(600)
class ClosedOutputTest {
    private static final String ENDLESS = "perf all_reduce --engine host -N 0 -b 8 -e 8 -n 1 -c 0 --jit-warmup 0";

    /** 128 + SIGPIPE. */
    private static final int PIPE_CLOSED = 141;

    private final MarkedProcesses marked = new MarkedProcesses();

    private static void readAndClose(Process process) throws Exception {
        try (BufferedReader lines = SamplesTest.lines(process)) {
            String line = lines.readLine();
            while (!line.strip().startsWith("8 ")) {
                line = lines.readLine();
            }
        }
    }

    @Test
    void launcherEnds() throws Exception {
        Process launcher = ChildProcesses.start(marked.mark(SamplesTest.command(ENDLESS + " -np 2")));
        readAndClose(launcher);
        assertTrue(launcher.waitFor(20, TimeUnit.SECONDS));
        assertEquals(PIPE_CLOSED, launcher.exitValue());
        marked.assertNoneLeft();
    }

    @Test
    void rankOfAnotherLauncherEnds() throws Exception {
        int port;
        try (ServerSocket socket = new ServerSocket(0)) {
            port = socket.getLocalPort();
        }
        List<Process> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            ProcessBuilder builder = marked.mark(SamplesTest.command(ENDLESS));
            String variables = "RANK=%1$d WORLD_SIZE=2 LOCAL_RANK=%1$d LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1"
                    + " MASTER_PORT=%2$d";
            for (String variable :
                    String.format(Locale.ROOT, variables, rank, port).split(" ")) {
                builder.environment().put(variable.split("=")[0], variable.split("=")[1]);
            }
            ranks.add(ChildProcesses.start(builder));
        }
        readAndClose(ranks.get(0));
        assertTrue(ranks.get(0).waitFor(20, TimeUnit.SECONDS));
        assertEquals(PIPE_CLOSED, ranks.get(0).exitValue());
    }

    /** By them a launcher ends its ranks. */
    @Test
    void shutdownHooksRun(@TempDir Path folder) throws Exception {
        Path ended = folder.resolve("ended");
        Process process = ChildProcesses.start(new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                Endless.class.getName(),
                ended.toString()));
        try (BufferedReader lines = SamplesTest.lines(process)) {
            assertEquals("line", lines.readLine());
        }
        assertTrue(process.waitFor(1, TimeUnit.MINUTES));
        assertEquals(PIPE_CLOSED, process.exitValue());
        assertTrue(Files.exists(ended));
    }

    /** Prints forever, and creates a file when it is shut down. */
    static final class Endless {
        public static void main(String[] arguments) throws InterruptedException {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> create(Path.of(arguments[0]))));
            OutputWatch.start();
            while (true) {
                System.out.println("line");
                Thread.sleep(1);
            }
        }

        private static void create(Path file) {
            try {
                Files.createFile(file);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
