package io.github.nccl4j.tools.launch;

import io.github.nccl4j.testing.Waiting;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

/** Program of the ranks in the launcher's tests, and a launcher of such ranks in its own process, which tests can kill. */
public final class TestRank {

    private TestRank() {}

    /**
     * Runs a scenario.
     *
     * @param args the scenario, the rank with a special part in it, and further arguments
     * @throws Exception if the scenario fails unexpectedly
     */
    public static void main(String[] args) throws Exception {
        if (!args[0].equals("launch")) {
            LauncherWatch.start();
        }
        String rank = System.getenv("RANK");
        boolean chosen = args.length > 1 && args[1].equals(rank);
        switch (args[0]) {
            case "environment" -> environment();
            case "exit" -> exit(chosen ? Integer.parseInt(args[2]) : 0);
            case "exit-others-wait" -> exitOrWait(chosen, Path.of(args[2]));
            case "stubborn" -> stubborn(chosen, Path.of(args[2]));
            case "killed" -> killed(chosen, Path.of(args[2]));
            case "killed-second" -> killedSecond(chosen, Path.of(args[2]));
            case "lines" -> lines(Integer.parseInt(args[1]));
            case "child" -> child();
            case "wait", "spare" -> waitLong();
            case "memory" -> exhaustMemory();
            case "stopped" -> stopped();
            case "launch" -> exit(launch(args[1]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void environment() {
        for (String name : List.of(
                "RANK",
                "WORLD_SIZE",
                "LOCAL_RANK",
                "LOCAL_WORLD_SIZE",
                "MASTER_ADDR",
                "MASTER_PORT",
                "NCCL4J_STORE_SECRET",
                "EXTRA")) {
            System.out.println(name + "=" + System.getenv(name));
        }
    }

    private static void exit(int code) {
        System.exit(code);
    }

    private static void exitOrWait(boolean chosen, Path folder) throws IOException, InterruptedException {
        meet(folder);
        if (chosen) {
            System.exit(7);
        }
        sleepLong();
    }

    /** The chosen rank kills itself; the others exit with an error at once, as ranks with a lost peer do. */
    private static void killed(boolean chosen, Path folder) throws IOException, InterruptedException {
        meet(folder);
        if (chosen) {
            Signals.send("KILL", ProcessHandle.current().pid());
        }
        awaitEnd(pidOf(2, folder));
        System.exit(1);
    }

    /** Rank 0 fails, and rank 1 is killed right after it; the others wait. */
    private static void killedSecond(boolean chosen, Path folder) throws IOException, InterruptedException {
        meet(folder);
        if (chosen) {
            long own = ProcessHandle.current().pid();
            // /proc/PID exists until the launcher has read the exit code.
            String afterwards = "while [ -e /proc/" + own + " ]; do :; done; kill -9 " + pidOf(1, folder);
            new ProcessBuilder("/bin/sh", "-c", afterwards).start();
            Runtime.getRuntime().halt(5);
        }
        sleepLong();
    }

    /** Prints the process id and waits for the other ranks. */
    private static void meet(Path folder) throws IOException, InterruptedException {
        printPid();
        String rank = System.getenv("RANK");
        Path whole = Files.writeString(
                folder.resolve("new" + rank),
                Long.toString(ProcessHandle.current().pid()));
        Files.move(whole, folder.resolve(rank));
        for (int other = 0; other < Integer.parseInt(System.getenv("WORLD_SIZE")); other++) {
            Path file = folder.resolve("" + other);
            Waiting.until(file.toString(), () -> Files.exists(file));
        }
    }

    private static long pidOf(int rank, Path folder) throws IOException {
        return Long.parseLong(Files.readString(folder.resolve("" + rank)));
    }

    private static void awaitEnd(long pid) throws InterruptedException {
        Waiting.until(
                "end of process " + pid,
                () -> !ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false));
    }

    /** The chosen rank fails once the others ignore SIGTERM, by a shutdown hook that never ends. */
    private static void stubborn(boolean chosen, Path folder) throws IOException, InterruptedException {
        if (chosen) {
            meet(folder);
            System.exit(6);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            System.out.println("hook");
            sleepLong();
        }));
        meet(folder);
        sleepLong();
    }

    /** Fills the heap until no thread can allocate an object, and says so. */
    private static void exhaustMemory() throws IOException {
        printPid();
        FileOutputStream out = new FileOutputStream(FileDescriptor.out);
        byte[] full = "out of memory\n".getBytes(StandardCharsets.US_ASCII);
        int size = 1 << 20;
        List<Object> held = new ArrayList<>(1 << 20);
        for (; ; ) {
            try {
                for (; ; ) {
                    held.add(new byte[size]);
                }
            } catch (OutOfMemoryError e) {
                // Continue with smaller arrays.
                if (size == 32) {
                    out.write(full);
                }
                size = Math.max(16, size / 2);
            }
        }
    }

    private static void stopped() throws IOException, InterruptedException {
        printPid();
        Signals.send("STOP", ProcessHandle.current().pid());
        sleepLong();
    }

    private static void lines(int count) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append("line ")
                    .append(i)
                    .append(' ')
                    .append("x".repeat(i % 97))
                    .append('\n');
        }
        System.out.print(text);
        System.err.println("on standard error");
        System.out.print("no end of line");
        System.out.flush();
    }

    private static void child() throws IOException {
        new ProcessBuilder("sleep", "1000").inheritIO().start();
        waitLong();
    }

    private static void waitLong() {
        printPid();
        sleepLong();
    }

    private static void printPid() {
        System.out.println("pid " + ProcessHandle.current().pid());
    }

    private static void sleepLong() {
        try {
            Thread.sleep(1_000_000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Reads names of signals, one per line, and sends each to this process. */
    private static void sendRequestedSignals() {
        try (Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8)) {
            while (lines.hasNextLine()) {
                Signals.send(lines.nextLine(), ProcessHandle.current().pid());
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static int launch(String scenario) throws IOException, InterruptedException {
        Thread signals = new Thread(TestRank::sendRequestedSignals);
        signals.setDaemon(true);
        signals.start();
        return new Launcher(
                        JavaCommand.of(List.of("-Xmx32m"), TestRank.class.getName(), List.of(scenario)),
                        2,
                        Map.of("NCCL4J_ENGINE", "host"),
                        Duration.ofMinutes(2),
                        System.out,
                        System.err)
                .spares(scenario.equals("spare") ? 1 : 0)
                .run();
    }
}
