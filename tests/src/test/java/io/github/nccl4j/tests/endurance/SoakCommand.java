package io.github.nccl4j.tests.endurance;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tests.Held;
import io.github.nccl4j.tools.launch.Capacity;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.launch.JavaCommand;
import io.github.nccl4j.tools.launch.OutputWatch;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nccl4j soak}: random work, splits, deaths and shrinks on the host engine, and what is left of them. */
@Command(
        name = "nccl4j soak",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Random collectives in streams, messages, splits, deaths and shrinks on the host engine.",
            "",
            "Each rank is a process, which lives until it is killed. All elements are compared. Rank 0 is never killed; after the "
                    + "first tenth, which warms up, it must not grow. Exit code 1 if it does, if an element is wrong, or if a "
                    + "round does not end.",
            ""
        })
public final class SoakCommand implements Callable<Integer> {
    private static final long STUCK_SECONDS = 60;

    private static final int REPORTS = 10;

    @Option(
            names = {"-n", "--ranks"},
            paramLabel = "N",
            defaultValue = "4",
            description = "How many processes. Default: ${DEFAULT-VALUE}.")
    private int size;

    @Option(
            names = {"-s", "--seconds"},
            paramLabel = "SECONDS",
            defaultValue = "60",
            description = "How long. Default: ${DEFAULT-VALUE}.")
    private int seconds;

    @Option(names = "--seed", paramLabel = "N", description = "The rounds follow from it. Default: the time.")
    private Long seed;

    @Option(
            names = "--lose",
            paramLabel = "BYTES",
            defaultValue = "0",
            description = "Native memory that rank 0 forgets in each round, to see that it is noticed.")
    private int lost;

    @Option(
            names = "--settle",
            paramLabel = "SECONDS",
            defaultValue = "10",
            description = "How long what is left at the end may take to go. Default: ${DEFAULT-VALUE}.")
    private int settle;

    @Option(
            names = "--warm",
            paramLabel = "ROUNDS",
            defaultValue = "20",
            description = "Rounds before anything is compared; as many follow at least. Default: ${DEFAULT-VALUE}.")
    private int warm;

    @Spec
    private CommandLine.Model.CommandSpec spec;

    private final List<Rank> ranks = new ArrayList<>();
    private Random random;
    private long rounds;
    private long deaths;
    private long operations;
    private long elements;
    private long children;

    private SoakCommand() {}

    /**
     * Runs the command and ends this JVM.
     *
     * @param args the arguments
     */
    public static void main(String[] args) {
        OutputWatch.start();
        System.setProperty("nccl4j.engine", "host");
        int code = CommandErrors.install(new CommandLine(new SoakCommand())).execute(args);
        System.out.flush();
        System.exit(code);
    }

    /** A round that has not ended as it should. */
    private static final class Wrong extends Exception {
        private static final long serialVersionUID = 1L;

        Wrong(String message) {
            super(message);
        }
    }

    /** A process. */
    private static final class Rank {
        private final int number;
        private final Process process;
        private final PrintStream input;
        private final LinkedBlockingQueue<String> answers = new LinkedBlockingQueue<>();

        Rank(int number, int size, int lost) throws IOException {
            this.number = number;
            List<String> options = new ArrayList<>(Held.FIXED_HEAP);
            options.addAll(List.of("-XX:TieredStopAtLevel=1", "-Dnccl4j.engine=host"));
            List<String> arguments = List.of(Integer.toString(size), Integer.toString(number == 0 ? lost : 0));
            ProcessBuilder builder = new ProcessBuilder(JavaCommand.of(options, SoakRank.class.getName(), arguments));
            if (number == 0) {
                builder.environment().put("MALLOC_ARENA_MAX", Held.ARENAS);
            }
            process = ChildProcesses.start(builder.redirectError(ProcessBuilder.Redirect.INHERIT));
            input = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
            Thread reader = new Thread(this::read);
            reader.setDaemon(true);
            reader.start();
        }

        private void read() {
            try (BufferedReader lines =
                    new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
                lines.lines().forEach(answers::add);
            } catch (IOException e) {
                answers.add("WRONG " + e);
            }
        }

        void tell(String line) {
            input.println(line);
        }

        String answer() throws Wrong, InterruptedException {
            String answer = answers.poll(STUCK_SECONDS, TimeUnit.SECONDS);
            if (answer == null) {
                printStacks();
                throw new Wrong("rank " + number + ": stuck, process " + process.pid());
            }
            if (answer.startsWith("WRONG")) {
                throw new Wrong("rank " + number + ": " + answer);
            }
            return answer;
        }

        private void printStacks() throws InterruptedException {
            String tool =
                    Path.of(System.getProperty("java.home"), "bin", "jcmd").toString();
            try {
                ChildProcesses.start(new ProcessBuilder(tool, Long.toString(process.pid()), "Thread.print").inheritIO())
                        .waitFor(10, TimeUnit.SECONDS);
            } catch (IOException noTool) {
                System.out.println("no stacks: " + noTool.getMessage());
            }
        }
    }

    @Override
    public Integer call() throws Exception {
        if (size < 2 || seconds < 1 || lost < 0 || warm < 0) {
            throw new ParameterException(
                    spec.commandLine(),
                    "-n must be at least 2, -s at least 1, --lose and --warm at least 0: " + size + ", " + seconds
                            + ", " + lost + ", " + warm);
        }
        Capacity.ofMachine().shortage(size, 1).ifPresent(reason -> {
            throw new ParameterException(spec.commandLine(), reason);
        });
        NcclLibrary library = NcclLibrary.get();
        if (library.engine() != Engine.HOST) {
            throw new IllegalStateException("the soak runs on the host engine, not on " + library);
        }
        long start = seed == null ? System.nanoTime() : seed;
        random = new Random(start);
        System.out.println(library + System.lineSeparator() + size + " ranks, " + seconds + " s, seed " + start);
        String wrong = null;
        String grown = null;
        long began = System.nanoTime();
        try {
            for (int number = 0; number < size; number++) {
                ranks.add(new Rank(number, size, lost));
            }
            grown = soak(began);
        } catch (Wrong e) {
            wrong = "round " + rounds + ", " + e.getMessage() + otherAnswers();
        } finally {
            for (Rank rank : ranks) {
                ChildProcesses.kill(rank.process);
            }
        }
        if (wrong != null) {
            System.out.println(wrong);
        }
        System.out.printf(
                Locale.ROOT,
                "%d rounds, %d operations, %d elements right, %d communicators from others, %d deaths, %d wrong or stuck, %s, "
                        + "seed %d, %d s%n",
                rounds,
                operations,
                elements,
                children,
                deaths,
                wrong == null ? 0 : 1,
                wrong != null ? "growth not measured" : grown.isEmpty() ? "nothing has grown" : "GROWN: " + grown,
                start,
                TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - began));
        return wrong == null && grown.isEmpty() ? 0 : 1;
    }

    /** Of ranks that were not asked yet: what one of them found wrong may be why another is stuck. */
    private String otherAnswers() {
        StringBuilder text = new StringBuilder();
        for (Rank rank : ranks) {
            for (String answer : rank.answers) {
                text.append("; rank ").append(rank.number).append(": ").append(answer);
            }
        }
        return text.toString();
    }

    /** What has grown, or "". */
    private String soak(long began) throws Exception {
        Held before = null;
        long warmRounds = 0;
        long reported = 0;
        long length = TimeUnit.SECONDS.toNanos(seconds);
        long time = 0;
        while (time < length || before == null || rounds < warmRounds + warm) {
            round();
            time = System.nanoTime() - began;
            long due = Math.min(time * REPORTS / length, REPORTS - 1);
            if (due == reported || rounds < warm) {
                continue;
            }
            reported = due;
            Held now = held();
            report(now);
            if (before == null) {
                before = now;
                warmRounds = rounds;
            }
        }
        Held after = held();
        long end = System.nanoTime();
        // What has nothing left to do may take its time to end.
        while (!after.grownSince(before).isEmpty() && System.nanoTime() - end < TimeUnit.SECONDS.toNanos(settle)) {
            after = held();
        }
        report(after);
        System.out.println("more than after " + warmRounds + " rounds: " + after.since(before));
        return String.join(", ", after.grownSince(before));
    }

    private Held held() throws Exception {
        ranks.get(0).tell(SoakRank.HELD);
        return Held.ofLine(ranks.get(0).answer());
    }

    private void report(Held held) {
        System.out.println("rank 0 after " + rounds + " rounds: " + held);
    }

    private void round() throws Exception {
        long roundSeed = random.nextLong();
        boolean death = random.nextInt(3) == 0;
        int victim = death ? 1 + random.nextInt(size - 1) : -1;
        int at = random.nextInt(50);
        String id = HexFormat.of().formatHex(UniqueId.create().toBytes());
        for (Rank rank : ranks) {
            rank.tell(roundSeed + " " + id + " " + rank.number + " " + size + " " + victim + " " + at);
        }
        for (Rank rank : ranks) {
            if (rank.number == victim) {
                continue;
            }
            String[] counts = rank.answer().split(" ");
            operations += Long.parseLong(counts[1]);
            elements += Long.parseLong(counts[2]);
            children += Long.parseLong(counts[3]);
        }
        if (victim >= 0) {
            deaths++;
            int code = ranks.get(victim).process.waitFor();
            if (code != 128 + 9) {
                throw new Wrong("rank " + victim + ": was to be killed, and ended with " + code);
            }
            ranks.set(victim, new Rank(victim, size, lost));
        }
        rounds++;
    }
}
