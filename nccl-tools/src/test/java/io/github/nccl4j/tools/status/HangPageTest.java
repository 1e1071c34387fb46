package io.github.nccl4j.tools.status;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.ToolsJar;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The first commands of docs/reproduce-a-hang.md print what the page shows. */
@Timeout(300)
class HangPageTest {
    private static final Path PAGE = Path.of("../docs/reproduce-a-hang.md");
    private static final String RECORDS = "target/hang";

    private static final Pattern BLOCK = Pattern.compile("```(sh|text)\\R(.*?)```", Pattern.DOTALL);
    private static final Pattern VARIABLE = Pattern.compile("(\\w+)=(?:\"([^\"]*)\"|(\\S+))\\s+");
    private static final Pattern COMMUNICATOR = Pattern.compile("communicator [0-9a-f]{8}");
    private static final Pattern OF_RANK =
            Pattern.compile("(?m)^ +([0-3]) .*(ncclAllReduce of .* \\(operation \\d+\\))");

    @TempDir
    Path folder;

    /** The blocks of a language, in their order. */
    private static List<String> blocks(String language) throws IOException {
        return BLOCK.matcher(Files.readString(PAGE))
                .results()
                .filter(block -> block.group(1).equals(language))
                .map(block -> block.group(2))
                .toList();
    }

    private Process start(String command, Path output) throws IOException {
        Map<String, String> variables = new TreeMap<>();
        String rest = command.replace("\\\n", "")
                .replace(RECORDS, folder.resolve(RECORDS).toString())
                .strip();
        Matcher variable = VARIABLE.matcher(rest);
        while (variable.lookingAt()) {
            variables.put(variable.group(1), variable.group(2) == null ? variable.group(3) : variable.group(2));
            rest = rest.substring(variable.end());
            variable = VARIABLE.matcher(rest);
        }
        List<String> words = new ArrayList<>(List.of(rest.split(" +")));
        assertEquals("./nccl4j", words.remove(0), command);
        ProcessBuilder builder = ToolsJar.command(words).redirectOutput(output.toFile());
        builder.environment().putAll(variables);
        return ChildProcesses.start(builder);
    }

    private String outputOf(String command) throws Exception {
        Path output = Files.createTempFile(folder, "command", ".txt");
        start(command, output).waitFor();
        return text(output);
    }

    private static String text(Path file) {
        try {
            return Files.readString(file, StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            return unreadable.toString();
        }
    }

    /** Each rank and the call in which it waits. */
    private static List<String> calls(String status) {
        return OF_RANK.matcher(status)
                .results()
                .map(rank -> rank.group(1) + " " + rank.group(2))
                .sorted()
                .toList();
    }

    private static String withoutName(String line) {
        return COMMUNICATOR.matcher(line).replaceAll("communicator X");
    }

    @Test
    void commandsPrintWhatThePageShows() throws Exception {
        List<String> commands = blocks("sh");
        List<String> outputs = blocks("text");
        Path output = folder.resolve("run.txt");
        Process job = start(commands.get(0), output);
        try {
            // Several jobs may run on this machine: the store of this one, as its ranks know it.
            String store = Waiting.value("a store of the job", () -> storeOf(job), one -> !one.isEmpty());
            List<String> wanted = calls(outputs.get(0));
            assertEquals(4, wanted.size(), outputs.get(0));
            String status = Waiting.value(
                    "all ranks are in the operation of the page",
                    () -> outputOf(commands.get(1).strip() + " --store " + store),
                    one -> calls(one).equals(wanted) || !job.isAlive());
            assertEquals(wanted, calls(status), () -> status + "\n" + text(output));
            assertTrue(status.startsWith(firstLine(outputs.get(0))), status);
            assertEquals(1, job.waitFor(), () -> text(output));
            assertTrue(
                    text(output).contains("ncclAllReduce of 49 float32 (operation 6) failed at rank "), text(output));
            // Rank 2 may fail first, and then the launcher ends the others.
            assertTrue(
                    text(output)
                            .lines()
                            .filter(line -> line.contains(" waited ") && !line.startsWith("[2] "))
                            .allMatch(line -> line.contains("AllReduce(ncclFloat32, count 49, ncclAvg) for rank 2")),
                    text(output));
        } finally {
            job.descendants().forEach(ProcessHandle::destroyForcibly);
            job.destroyForcibly().waitFor();
        }
        String report = outputOf(commands.get(2));
        if (records().length < 4) {
            // The launcher ends the other ranks after the first that fails, perhaps before one has written its record.
            assertTrue(firstLine(report).contains("ncclAllReduce of 49 float32, AVG (operation 6)"), report);
        } else {
            assertEquals(withoutName(firstLine(outputs.get(2))), withoutName(firstLine(report)), report);
        }
    }

    private String[] records() {
        return Objects.requireNonNull(folder.resolve(RECORDS).toFile().list(), RECORDS);
    }

    private static String firstLine(String text) {
        return text.lines().findFirst().orElse("");
    }

    private static String storeOf(Process job) {
        return job.descendants()
                .flatMap(rank -> StoreFinder.ofProcess(Path.of("/proc/" + rank.pid())).keySet().stream())
                .findFirst()
                .orElse("");
    }
}
