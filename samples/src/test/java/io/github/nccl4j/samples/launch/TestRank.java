package io.github.nccl4j.samples.launch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** What the ranks of the launcher's tests run, and a launcher of such ranks that can be killed. */
public final class TestRank {

    private TestRank() {}

    /**
     * Does what the first argument says; the second names the rank that it is about.
     *
     * @param args the arguments
     * @throws Exception if something unforeseen happens
     */
    public static void main(String[] args) throws Exception {
        LauncherWatch.start();
        String rank = System.getenv("RANK");
        boolean chosen = args.length > 1 && args[1].equals(rank);
        switch (args[0]) {
            case "environment" -> environment();
            case "exit" -> exit(chosen ? Integer.parseInt(args[2]) : 0);
            case "exit-others-wait" -> exitOrWait(chosen, Integer.parseInt(args[2]));
            case "killed" -> killed(chosen, Path.of(args[2]));
            case "lines" -> lines(Integer.parseInt(args[1]));
            case "child" -> child();
            case "wait" -> waitLong();
            case "launch" -> exit(launch(args[1]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void environment() {
        for (String name : List.of(
                "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "EXTRA")) {
            System.out.println(name + "=" + System.getenv(name));
        }
    }

    private static void exit(int code) {
        System.exit(code);
    }

    private static void exitOrWait(boolean chosen, int code) throws InterruptedException {
        if (chosen) {
            System.exit(code);
        }
        waitLong();
    }

    /** The chosen rank kills itself; the others notice at once and exit, as they would with a lost peer. */
    private static void killed(boolean chosen, Path pidFile) throws IOException, InterruptedException {
        String own = Long.toString(ProcessHandle.current().pid());
        if (chosen) {
            Files.writeString(pidFile.resolveSibling("pid.new"), own);
            Files.move(pidFile.resolveSibling("pid.new"), pidFile);
            new ProcessBuilder("kill", "-9", own).start();
            waitLong();
        }
        while (!Files.exists(pidFile)) {
            Thread.sleep(1);
        }
        ProcessHandle.of(Long.parseLong(Files.readString(pidFile)))
                .ifPresent(peer -> peer.onExit().join());
        System.exit(1);
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

    private static void child() throws IOException, InterruptedException {
        new ProcessBuilder("sleep", "1000").inheritIO().start();
        waitLong();
    }

    private static void waitLong() throws InterruptedException {
        System.out.println("pid " + ProcessHandle.current().pid());
        Thread.sleep(1_000_000);
    }

    private static int launch(String what) throws IOException, InterruptedException {
        return new Launcher(
                        JavaCommand.of(List.of(), TestRank.class.getName(), List.of(what)),
                        2,
                        Map.of(),
                        Duration.ofMinutes(2),
                        System.out,
                        System.err)
                .run();
    }
}
