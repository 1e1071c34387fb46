package io.github.nccl4j.samples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;

/**
 * The commands of the documentation: those in blocks of {@code sh} run here, by the jar that {@code ./nccl4j} runs. What can't is
 * marked: {@code sh gpu}, {@code sh cluster}, {@code sh install} (needs a network), {@code sh example} (a number of the reader's).
 */
@Timeout(120)
class DocsCommandsTest {
    private static final Path DOCS = Path.of("../docs");

    /** A mark, and words one of which is in every command that has it. */
    private static final Map<String, List<String>> MARKS = Map.of(
            "gpu", List.of("./nccl4j"),
            "cluster", List.of("torchrun", "mpirun", "srun", "kubectl"),
            "install", List.of("pip ", "mvn ", "apt-get "),
            "example", List.of("--pid", "-jar"));

    private record Command(String place, String mark, String line) {}

    private static List<Command> commands() throws IOException {
        List<Path> pages;
        try (Stream<Path> files = Files.list(DOCS)) {
            pages = files.filter(file -> file.toString().endsWith(".md"))
                    .sorted()
                    .toList();
        }
        List<Command> commands = new ArrayList<>();
        for (Path page : pages) {
            String mark = null;
            List<String> lines = Files.readAllLines(page);
            for (int i = 0; i < lines.size(); i++) {
                String line = lines.get(i);
                if (line.startsWith("```")) {
                    mark = mark == null && line.startsWith("```sh")
                            ? line.substring(5).strip()
                            : null;
                } else if (mark != null) {
                    StringBuilder whole = new StringBuilder(line);
                    while (whole.toString().endsWith("\\")) {
                        whole.setLength(whole.length() - 1);
                        whole.append(lines.get(++i).strip());
                    }
                    commands.add(new Command(page.getFileName() + ":" + (i + 1), mark, whole.toString()));
                }
            }
        }
        return commands;
    }

    @Test
    void aMarkIsOnlyForWhatNeedsIt() throws IOException {
        for (Command command : commands()) {
            if (!command.mark().isEmpty()) {
                List<String> words = MARKS.get(command.mark());
                assertTrue(
                        words != null && words.stream().anyMatch(command.line()::contains),
                        command.place() + ": '" + command.mark() + "' for " + command.line());
            }
        }
    }

    @TestFactory
    Stream<DynamicTest> unmarkedCommandsRun() throws IOException {
        List<Command> unmarked =
                commands().stream().filter(command -> command.mark().isEmpty()).toList();
        assertTrue(unmarked.size() >= 4, unmarked.toString());
        return unmarked.stream()
                .map(command -> DynamicTest.dynamicTest(command.place() + " " + command.line(), () -> run(command)));
    }

    private static void run(Command command) throws IOException, InterruptedException {
        assertTrue(command.line().startsWith("./nccl4j "), command.place() + ": " + command.line());
        List<String> words = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-jar",
                "target/nccl4j-samples.jar"));
        words.addAll(List.of(command.line().substring("./nccl4j ".length()).split(" +")));
        ProcessBuilder builder = new ProcessBuilder(words).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.startsWith("NCCL"));
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int code = process.waitFor();
        // Doctor may have found a problem of this machine.
        boolean found = command.line().startsWith("./nccl4j doctor") && code == 1;
        assertEquals(0, found ? 0 : code, command.place() + ": " + command.line() + "\n" + output);
    }
}
