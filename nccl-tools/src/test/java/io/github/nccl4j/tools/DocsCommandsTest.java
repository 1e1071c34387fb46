package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.Programs;
import io.github.nccl4j.tools.support.ToolsJar;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;

/**
 * Runs the commands in the {@code sh} blocks of the README and the documentation, with the jar that {@code ./nccl4j} runs.
 *
 * <p>A comment above a block, such as {@code <!-- gpu -->}, marks commands that cannot run here: {@code gate} (the gate runs
 * them), {@code gpu}, {@code cluster}, {@code install} (need a network), {@code maintainer} (releases and their API),
 * {@code checkout} (take long, or need a checkout) and {@code example} (contain values of the reader).
 */
@Timeout(600)
class DocsCommandsTest {
    private static final Path README = Path.of("../README.md");
    private static final Path CONTRIBUTING = Path.of("../CONTRIBUTING.md");
    private static final Path DOCS = Path.of("../docs");
    private static final Path GATE = Path.of("../.ci/run");
    private static final Path EXAMPLES =
            Path.of("../examples/src/main/resources/io/github/nccl4j/examples/examples.txt");
    /** Variables before the command. */
    private static final Pattern COMMAND = Pattern.compile("((?:[A-Z0-9_]+=\\S+ )*)\\./nccl4j (.*)");

    private static final Pattern MARK = Pattern.compile("<!-- (\\w+) -->");

    /** The marks; each marked command must contain one of the words. */
    private static final Map<String, List<String>> MARKS = Map.of(
            "gpu", List.of("./nccl4j", "nvcc", "startup.py"),
            "cluster",
                    List.of(
                            "zkCli.sh",
                            "torchrun",
                            "mpirun",
                            "srun",
                            "kubectl",
                            "MASTER_ADDR=",
                            "NCCL4J_STORE",
                            "nccl4j store",
                            "nccl4j status",
                            "nccl4j ras"),
            "install", List.of("pip ", "mvn ", "apt-get "),
            "example", List.of("--pid", "-jar", "-cp", "<", "plot", "> nccl.key", "KEY_FILE=nccl.key"),
            "maintainer", List.of(".ci/test-release", "gh ", "-Dnccl4j.api=", "versions:"),
            "checkout", List.of("./nccl4j", "mvn ", ".ci/", "nccl-host/"),
            "gate", List.of("./nccl4j", "mvn "));

    private record Outcome(int code, List<String> output) {}

    /** Outcomes of commands: several pages may contain the same command. */
    private static final Map<String, Outcome> OUTCOMES = new HashMap<>();

    private record Command(String place, String mark, String line) {}

    /** A command in an indented block, which has no mark. */
    private static final Pattern INDENTED =
            Pattern.compile(" {4}(\\./nccl4j|mvn|pip|apt-get|torchrun|mpirun|srun|kubectl|\\.ci/|benchmarks/).*");

    private static List<Path> pages() throws IOException {
        List<Path> pages = new ArrayList<>(List.of(README, CONTRIBUTING));
        try (Stream<Path> files = Files.walk(DOCS)) {
            files.filter(file -> file.toString().endsWith(".md")).sorted().forEach(pages::add);
        }
        return pages;
    }

    private static List<Command> commands() throws IOException {
        List<Command> commands = new ArrayList<>();
        for (Path page : pages()) {
            String mark = null;
            List<String> lines = Files.readAllLines(page);
            for (int i = 0; i < lines.size(); i++) {
                String line = lines.get(i);
                if (line.startsWith("```")) {
                    Matcher comment = MARK.matcher(i > 0 ? lines.get(i - 1) : "");
                    boolean opens = mark == null && line.startsWith("```sh");
                    mark = !opens ? null : comment.matches() ? comment.group(1) : "";
                } else if (mark != null) {
                    StringBuilder whole = new StringBuilder(line);
                    while (whole.toString().endsWith("\\")) {
                        whole.setLength(whole.length() - 1);
                        whole.append(lines.get(++i).strip());
                    }
                    commands.add(new Command(page + ":" + (i + 1), mark, whole.toString()));
                }
            }
        }
        return commands;
    }

    @Test
    void commandsAreInFencedBlocks() throws IOException {
        for (Path page : pages()) {
            assertEquals(
                    List.of(),
                    Files.readAllLines(page).stream()
                            .filter(line -> INDENTED.matcher(line).matches())
                            .toList(),
                    page.toString());
        }
    }

    @Test
    void markedCommandsNeedTheirMark() throws IOException {
        for (Command command : commands()) {
            if (!command.mark().isEmpty()) {
                List<String> words = MARKS.get(command.mark());
                assertTrue(
                        words != null && words.stream().anyMatch(command.line()::contains),
                        command.place() + ": '" + command.mark() + "' for " + command.line());
            }
        }
    }

    @Test
    void gateRunsCommandsMarkedGate() throws IOException {
        String gate = Files.readString(GATE);
        List<Command> marked = commands().stream()
                .filter(command -> command.mark().equals("gate"))
                .toList();
        assertFalse(marked.isEmpty());
        for (Command command : marked) {
            assertTrue(gate.contains(command.line()), command.place() + ": .ci/run has no " + command.line());
        }
    }

    /** Also those that cannot run here. */
    @Test
    void theirArgumentsAreAccepted() throws IOException {
        Pattern use = Pattern.compile("(?:\\./nccl4j|nccl4j-tools\\.jar) ([a-z][a-z-]*)([^|>&;#]*)");
        Set<String> names = Main.commandLine().getSubcommands().keySet();
        int parsed = 0;
        for (Command command : commands()) {
            String line = command.line().replace("<sample>", "01").replaceAll("<[a-z]+>", "2");
            // The script knows these names, in a checkout.
            line = line.replaceAll(" run (" + String.join("|", examples()) + ")\\b", " run 01");
            Matcher found = use.matcher(line);
            if (found.find() && names.contains(found.group(1))) {
                String arguments = (found.group(1) + found.group(2))
                        .replaceAll("['\"]|\\$\\(.*", "")
                        .strip();
                assertDoesNotThrow(
                        () -> Main.commandLine(arguments.split(" +")).parseArgs(arguments.split(" +")),
                        command.place() + ": " + command.line());
                parsed++;
            }
        }
        assertTrue(parsed > 30, parsed + " commands");
    }

    private static List<String> examples() throws IOException {
        return Pattern.compile("(?m)^([a-z-]+) [A-Z]")
                .matcher(Files.readString(EXAMPLES))
                .results()
                .map(name -> name.group(1))
                .toList();
    }

    @TestFactory
    Stream<DynamicTest> unmarkedCommandsSucceed() throws IOException {
        List<Command> unmarked =
                commands().stream().filter(command -> command.mark().isEmpty()).toList();
        assertTrue(unmarked.size() >= 4, unmarked.toString());
        return unmarked.stream()
                .map(command -> DynamicTest.dynamicTest(command.place() + " " + command.line(), () -> run(command)));
    }

    private static void run(Command command) throws IOException, InterruptedException {
        Matcher matcher = COMMAND.matcher(command.line());
        assertTrue(matcher.matches(), command.place() + ": " + command.line());
        String variables = matcher.group(1);
        String arguments = matcher.group(2);
        if (arguments.contains("with-python")) {
            Programs.require("python3", "python3");
        }
        if (!OUTCOMES.containsKey(command.line())) {
            OUTCOMES.put(command.line(), run(variables, arguments));
        }
        Outcome outcome = OUTCOMES.get(command.line());
        String text = command.place() + ": " + command.line() + "\n" + String.join("\n", outcome.output());
        if (arguments.startsWith("doctor")) {
            // This machine may have a problem; the exit code must agree.
            boolean found =
                    outcome.output().stream().anyMatch(line -> line.strip().startsWith("problem "));
            assertEquals(found ? 1 : 0, outcome.code(), text);
            assertTrue(outcome.output().containsAll(List.of("NCCL library", "GPUs", "network")), text);
        } else {
            assertEquals(0, outcome.code(), text);
            SamplesTest.assertEveryRankChecked(arguments, outcome.output());
        }
    }

    private static Outcome run(String variables, String arguments) throws IOException, InterruptedException {
        ProcessBuilder command = ToolsJar.command(List.of(arguments.split(" +")));
        for (String variable : variables.split(" ")) {
            String[] parts = variable.split("=", 2);
            if (parts.length == 2) {
                command.environment().put(parts[0], parts[1]);
            }
        }
        Process process = ChildProcesses.start(command);
        List<String> output = SamplesTest.output(process);
        return new Outcome(process.waitFor(), output);
    }
}
