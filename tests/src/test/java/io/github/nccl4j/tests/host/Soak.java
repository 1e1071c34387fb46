package io.github.nccl4j.tests.host;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Random collectives in streams, messages, splits, deaths and shrinks on the host engine, over processes that live as long as
 * they are not killed: {@code Soak [--seconds N] [--seed N] [--ranks N]}. The rounds follow from the seed. Ends with one
 * line of counts; the exit code is 0 if all elements were right, nothing hung, and the first rank, which is never killed,
 * has not grown.
 */
final class Soak {
    private static final long STUCK_SECONDS = 60;
    private static final long GROWTH_KIB = 64 << 10;
    /** After which the JVM's own memory has settled. */
    private static final int WARM_ROUNDS = 20;

    private final int size;
    private final Random random;
    private final List<Rank> ranks = new ArrayList<>();
    private long rounds;
    private long deaths;
    private long operations;
    private long elements;
    private long children;

    private Soak(int size, long seed) {
        this.size = size;
        random = new Random(seed);
    }

    public static void main(String... args) throws Exception {
        Map<String, Long> options = new TreeMap<>(Map.of("--seconds", 30L, "--seed", System.nanoTime(), "--ranks", 4L));
        for (int i = 0; i + 1 < args.length; i += 2) {
            if (options.replace(args[i], Long.parseLong(args[i + 1])) == null) {
                throw new IllegalArgumentException("unknown option " + args[i] + "; there are " + options.keySet());
            }
        }
        System.out.println("seed " + options.get("--seed") + ", " + options.get("--ranks") + " ranks");
        Soak soak = new Soak(options.get("--ranks").intValue(), options.get("--seed"));
        System.exit(soak.run(options.get("--seconds")) ? 0 : 1);
    }

    /** A process. */
    private static final class Rank {
        private final Process process;
        private final PrintStream input;
        private final LinkedBlockingQueue<String> answers = new LinkedBlockingQueue<>();

        Rank(int size) throws IOException {
            String java =
                    Path.of(System.getProperty("java.home"), "bin", "java").toString();
            process = new ProcessBuilder(
                            java,
                            "-XX:+UseSerialGC",
                            "-XX:TieredStopAtLevel=1",
                            // So that the process grows by native memory only.
                            "-Xms160m",
                            "-Xmx160m",
                            "-XX:+AlwaysPreTouch",
                            "-Dnccl4j.engine=host",
                            "-cp",
                            System.getProperty("java.class.path"),
                            SoakRank.class.getName(),
                            Integer.toString(size))
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            input = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
            Thread reader = new Thread(() -> {
                try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
                    lines.lines().forEach(answers::add);
                } catch (IOException e) {
                    answers.add("WRONG " + e);
                }
            });
            reader.setDaemon(true);
            reader.start();
        }

        long status(String name) throws IOException {
            for (String line : Files.readAllLines(Path.of("/proc/" + process.pid() + "/status"))) {
                if (line.startsWith(name)) {
                    return Long.parseLong(line.replaceAll("[^0-9]", ""));
                }
            }
            throw new IllegalArgumentException(name);
        }

        long files() throws IOException {
            try (var files = Files.list(Path.of("/proc/" + process.pid() + "/fd"))) {
                return files.count();
            }
        }
    }

    private boolean run(long seconds) throws Exception {
        long start = System.nanoTime();
        for (int rank = 0; rank < size; rank++) {
            ranks.add(new Rank(size));
        }
        long[] warm = null;
        String wrong = null;
        while (wrong == null && System.nanoTime() - start < TimeUnit.SECONDS.toNanos(seconds)) {
            wrong = round();
            if (rounds == WARM_ROUNDS) {
                warm = held();
            }
        }
        long[] last = wrong == null ? held() : null;
        ranks.forEach(rank -> rank.process.destroyForcibly());
        for (Rank rank : ranks) {
            rank.process.waitFor();
        }
        String growth = "not measured";
        boolean grown = false;
        if (warm != null && last != null) {
            growth = (last[0] - warm[0]) + " KiB, " + (last[1] - warm[1]) + " threads, " + (last[2] - warm[2])
                    + " files";
            grown = last[0] - warm[0] > GROWTH_KIB || last[1] - warm[1] > 2 || last[2] - warm[2] > 2;
        }
        if (wrong != null) {
            System.out.println(wrong);
        }
        System.out.println(
                rounds + " rounds, " + operations + " operations, " + elements + " elements right, " + children
                        + " communicators from others, " + deaths + " deaths, " + (wrong == null ? 0 : 1)
                        + " wrong or stuck, grown by "
                        + growth + ", " + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start) + " s");
        return wrong == null && !grown;
    }

    private long[] held() throws IOException {
        Rank first = ranks.get(0);
        return new long[] {first.status("VmRSS:"), first.status("Threads:"), first.files()};
    }

    /** What went wrong, or null. */
    private String round() throws Exception {
        long seed = random.nextLong();
        boolean death = random.nextInt(3) == 0;
        int victim = death ? 1 + random.nextInt(size - 1) : -1;
        int at = random.nextInt(50);
        String id = io.github.nccl4j.tests.host.Rank.newId();
        for (int rank = 0; rank < size; rank++) {
            ranks.get(rank).input.println(seed + " " + id + " " + rank + " " + size + " " + victim + " " + at);
        }
        for (int rank = 0; rank < size; rank++) {
            if (rank == victim) {
                continue;
            }
            String answer = ranks.get(rank).answers.poll(STUCK_SECONDS, TimeUnit.SECONDS);
            if (answer == null || !answer.startsWith("done ")) {
                return "round " + rounds + " (seed " + seed + ", victim " + victim + " at " + at + "), rank " + rank
                        + ": " + (answer == null ? "stuck, process " + stuck(ranks.get(rank)) : answer);
            }
            String[] counts = answer.split(" ");
            operations += Long.parseLong(counts[1]);
            elements += Long.parseLong(counts[2]);
            children += Long.parseLong(counts[3]);
        }
        if (victim >= 0) {
            deaths++;
            int code = ranks.get(victim).process.waitFor();
            if (code != 128 + 9) {
                return "round " + rounds + ": the victim ended with " + code;
            }
            ranks.set(victim, new Rank(size));
        }
        rounds++;
        return null;
    }

    /** Has the stacks of a process printed before it is killed. */
    private static long stuck(Rank rank) throws IOException, InterruptedException {
        String pid = Long.toString(rank.process.pid());
        new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "jstack")
                                .toString(),
                        pid)
                .inheritIO()
                .start()
                .waitFor(10, TimeUnit.SECONDS);
        return rank.process.pid();
    }
}
