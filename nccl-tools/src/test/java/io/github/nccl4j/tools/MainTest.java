package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;

class MainTest {

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int execute(String arguments) {
        String[] words = arguments.isEmpty() ? new String[0] : arguments.split(" ");
        CommandLine command = Main.commandLine(words);
        // Buffered like that of a process, so that a missing flush shows.
        command.setOut(new PrintWriter(new BufferedWriter(out), true));
        command.setErr(new PrintWriter(err, true));
        return command.execute(words);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "runn 01 -n 4 | no such command: 'runn'; there are COMMANDS; did you mean run?",
                "--versio | Unknown option: '--versio'; did you mean --version?",
                "run 01 -n 2 --enginee host | Unknown options: '--enginee', 'host'; did you mean --engine?",
                "run 01 -n 2147483647 | RANKS",
                "run 01 -n 99999999999 | Invalid value for option '--ranks': '99999999999' is not an int",
                "startup -n 2147483647 | RANKS",
                "perf all_reduce -np 2147483647 | RANKS",
                "gradients -np 2 -w 0 | -w must be from 1 to 4096: 0",
                "gradients -np 2 -w 4097 | -w must be from 1 to 4096: 4097",
                "gradients -np 2 -b 1M,2 | -b must be at least 4: 2",
                "gradients -np 2 -n 0 | -n must be at least 1: 0",
                "gradients -np 2 --backward 0 | --backward must be above 0, and at most 1000: 0.0",
                "gradients -np 2 -J /nonexistent/x | -J: no such folder: /nonexistent",
                "perf all_reduce -np 1 -t 2147483647 -g 2 | -t times -g must be at most 4096: 2147483647, 2",
                "perf all_reduce -np 1 -e 9000000G | -e must be at most 1048576G: 9663676416000000",
                "perf all_reduce -np 1 -y 2 | -y must be 0 or 1: 2",
                "perf all_reduce -np 1 -C -1 | -C must be 0 or 1: -1",
                "perf all_reduce -np 1 -S 2 | -S must be 0 or 1: 2",
                "perf all_reduce -np 1 -w -1 | -w, -N and -c must not be negative: -1, 1, 1",
                "perf all_reduce -np 1 -u -1 | -T, -G and -u must not be negative: 0, 0, -1",
                "perf all_reduce -np 1 --rounds 0 | --rounds must be at least 1: 0",
                "perf all_reduce -np 1 -J /nonexistent/x | -J: no such folder: /nonexistent",
                "perf all_reduce -np 1 -J x --plot /nonexistent/x.svg | --plot: no such folder: /nonexistent",
                "perf alltoallv -np 1 --matrix /nonexistent | can't read the matrix: /nonexistent: no such file or folder",
                "plot x -o x.gif | -o must end with .svg: x.gif",
                "plot x -o /nonexistent/x.svg | -o: no such folder: /nonexistent",
                "analyze /nonexistent | no such folder: /nonexistent",
                "analyze /tmp --late 0 | --late must be at least 1: 0",
                "explain 0299 | no such id: '0299'; the nearest are NCCL4J-0301, NCCL4J-0302, NCCL4J-0303; nccl4j explain lists all",
                "explain 0208 rank | no such id: 'rank'; nccl4j explain lists all",
                "explain nccl4j-00208 | no such id: 'nccl4j-00208'; nccl4j explain lists all",
                "status --timeout 0 | --timeout must be from 1 to 60: 0",
                "status --watch 0 | --watch must be from 1 to 3600: 0",
                "ras 127.0.0.1:x --force | the address of a RAS service must end with a port from 1 to 65535: 127.0.0.1:x",
                "ras --timeout 0 | --timeout must be from 1 to 3600: 0",
                "ras --monitor gpu | --monitor must be lifecycle, trace or all: gpu",
                "status --store 127.0.0.1:x | the address of a store must end with a port from 1 to 65535: 127.0.0.1:x",
                "doctor --pid 0 | --pid must be at least 1: 0",
                "doctor --timeout 0 | --timeout must be at least 1: 0",
                "run 99 -n 4 | no such sample: '99'; there are NAMES",
                "run 99 -e 4M | no such sample: '99'; there are NAMES",
                "run | the name of a sample, or -- and a command, is missing; the samples: NAMES",
                "run -n 2 -- | the command after -- is missing",
                "run -n 2 99 -- java | no such sample: '99'; there are NAMES",
                "run 01 -n 2 -- java | Unmatched argument at index 5: 'java'",
                "run -n 0 -- java | -n must be at least 1: 0",
                "run -n 2 -J-Xmx1g -- java | -J is for samples; the program has options of its own",
                "run -n 2 --spares 1 -- java | --spares is for samples; the program has options of its own",
                "run --init-timeout 5 -n 2 -- java | --init-timeout is for samples; the program has options of its own",
                "run -n 2 --max-restarts -1 -- java | --max-restarts must be at least 0: -1",
                "run 01 -n 0 | -n must be at least 1: 0",
                "run -n -3 02 | -n must be at least 1: -3",
                "run -n 2 02 --timeout 0 | --timeout must be at least 1: 0",
                "run 01 -n 2 --timeout 0 | --timeout must be at least 1: 0",
                "run 01 -n 2 --engine cuda | no such engine: 'cuda' (nccl, rccl, host or auto)",
                "run 01 -n 2 --timeout 99999999999 | Invalid value for option '--timeout': '99999999999' is not an int",
                "run 01 -n 2 --init-timeout 0 | --init-timeout must be at least 1: 0",
                "run 01 -n two | Invalid value for option '--ranks': 'two' is not an int",
                "run 01 -n 2 -e 8 -e 16 | option '-e' (SIZE) should be specified only once",
                "run 02 -n 2 -e | Missing required parameter for option '-e' (SIZE)",
                "run 02 -n 2 -c 1 | Unknown options: '-c', '1'",
            })
    void wrongArgumentsAreReported(String arguments, String message) {
        assertEquals(2, execute(arguments));
        assertEquals(
                "nccl4j: "
                        + message.replace("NAMES", Samples.names())
                                .replace(
                                        "COMMANDS",
                                        "run, list, check-header, doctor, analyze, status, ras, explain, perf, gradients, plot, startup, conformance, survival, store")
                                .replace("RANKS", tooManyRanks()),
                err.toString().lines().findFirst().orElse(""));
        assertEquals("", out.toString());
    }

    private static String tooManyRanks() {
        int processors = Runtime.getRuntime().availableProcessors();
        return "at most 64 ranks per processor are allowed: 2147483647 ranks, " + processors
                + (processors == 1 ? " processor" : " processors") + "; use --oversubscribe to start them anyway";
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "plot /nonexistent.json -o x.svg | /nonexistent.json: no such file or folder",
                "plot /proc -o x.svg | /proc is a folder, not a file of results",
            })
    void unreadableFileIsReportedWithTheReason(String arguments, String message) {
        assertEquals(1, execute(arguments));
        assertEquals("nccl4j: " + message, err.toString().strip());
    }

    @ParameterizedTest
    @ValueSource(strings = {"no JSON", "[1]", "{\"time\": {}}", "{\"config\": 5, \"results\": []}"})
    void aFileThatHasNoResultsIsReportedInOneLine(String text, @TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("x.json"), text);
        assertEquals(1, execute("plot " + file + " -o " + folder.resolve("x.svg")));
        String message = err.toString();
        assertTrue(
                message.startsWith("nccl4j: " + file + " is not a file of results of nccl4j perf or nccl-tests: "),
                message);
        assertEquals(1, message.lines().count(), message);
    }

    @Test
    void helpOfAllCommandsExplainsEachOptionIn80Columns() {
        for (CommandLine command : Main.commandLine().getSubcommands().values()) {
            assertHelpFits(command);
            command.getSubcommands().values().forEach(this::assertHelpFits);
        }
        assertEquals(0, execute("list"));
        assertEquals(List.of(), wideLines(out.toString()));
    }

    private void assertHelpFits(CommandLine command) {
        assertEquals(List.of(), wideLines(command.getUsageMessage()), command.getCommandName());
        command.getCommandSpec()
                .options()
                .forEach(option -> assertFalse(
                        String.join("", option.description()).isBlank(), command.getCommandName() + " " + option));
    }

    private static List<String> wideLines(String text) {
        return text.lines().filter(line -> line.length() > 80).toList();
    }

    @Test
    void helpOfTheScriptHas80Columns() throws IOException {
        String script = Files.readString(Path.of("../nccl4j"));
        String help = script.substring(script.indexOf("<<'HELP'"), script.indexOf("\nHELP"));
        assertEquals(List.of(), wideLines(help));
    }

    @Test
    void helpOfTheScriptNamesAllCommands() throws IOException {
        String script = Files.readString(Path.of("../nccl4j"));
        String help = script.substring(script.indexOf("<<'HELP'"), script.indexOf("\nHELP"));
        for (String name : Main.commandLine().getSubcommands().keySet()) {
            assertTrue(Pattern.compile("(?m)^  " + name + " ").matcher(help).find(), name);
        }
    }

    /** Without a build. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "stauts | nccl4j: no such command: 'stauts'; did you mean status?",
                "benchmrk | nccl4j: no such command: 'benchmrk'; did you mean benchmark?",
                "frobnicate | nccl4j: no such command: 'frobnicate'",
            })
    void theScriptSuggestsCommands(String word, String message) throws Exception {
        Process script = ChildProcesses.start(new ProcessBuilder("bash", "../nccl4j", word).redirectErrorStream(true));
        assertEquals(message, SamplesTest.output(script).get(0));
        assertEquals(2, script.waitFor());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "--help", "run --help", "run 01 --help", "run 02 -h", "run 03-all-to-all-v -h"})
    void helpSucceeds(String arguments) {
        assertEquals(0, execute(arguments));
        assertTrue(out.toString().startsWith("Usage: nccl4j"), out.toString());
    }

    /** Samples have consecutive numbers and can be called by number, by name or by both. */
    @Test
    void listsTheSamples() {
        assertEquals(0, execute("list"));
        List<String> lines =
                out.toString().lines().filter(line -> !line.startsWith(" ")).toList();
        assertEquals(14, lines.size());
        for (int i = 0; i < lines.size(); i++) {
            String name = Samples.all().get(i).name();
            assertTrue(lines.get(i).startsWith(name + " "), lines.get(i));
            assertTrue(name.startsWith(String.format(Locale.ROOT, "%02d-", i)), name);
            assertEquals(
                    Stream.of(name.substring(0, 2), Integer.toString(i), name.substring(3))
                            .distinct()
                            .toList(),
                    List.of(Samples.all().get(i).aliases()));
        }
    }

    @Test
    void thePageListsTheSameSamples() throws IOException {
        List<String> names = Files.readString(Path.of("../docs/samples.md"))
                .lines()
                .map(Pattern.compile("\\| `(\\d\\d-[a-z-]+)` \\|.*")::matcher)
                .filter(Matcher::matches)
                .map(row -> row.group(1))
                .toList();
        assertEquals(Samples.all().stream().map(Samples.Sample::name).toList(), names);
    }

    /** Values for the options that do not take a word. */
    private static final List<String> VALUES = List.of("x", "2", "2/1", "all", "nccl", "float", "sum", "-Dx=y");

    /** An option and its value as one argument and as two, and the examples in its description. */
    @Test
    void everyFormOfEveryOptionIsAccepted() {
        int forms = 0;
        for (CommandLine command : Main.commandLine().getSubcommands().values()) {
            for (OptionSpec option : command.getCommandSpec().options()) {
                String example = Pattern.compile("such as (-\\S+?)[. ]")
                        .matcher(String.join(" ", option.description()) + " ")
                        .results()
                        .map(found -> found.group(1))
                        .filter(word -> Stream.of(option.names()).anyMatch(word::startsWith))
                        .findFirst()
                        .orElse("");
                if (!example.isEmpty()) {
                    assertEquals("", refusal(command, option, example), example);
                    forms++;
                }
                boolean isJvm = option.parameterConsumer() != null;
                String value = option.arity().max() == 0
                        ? ""
                        : VALUES.stream()
                                .filter(word -> !isJvm || word.startsWith("-"))
                                .filter(word -> refusal(command, option, option.names()[0], word)
                                        .isEmpty())
                                .findFirst()
                                .orElseThrow(() -> new AssertionError(
                                        command.getCommandName() + ": no value for " + option.names()[0]));
                for (String name : option.names()) {
                    if (value.isEmpty()) {
                        assertEquals("", refusal(command, option, name));
                    } else {
                        assertEquals("", refusal(command, option, name, value));
                        assertEquals("", refusal(command, option, name + "=" + value));
                        if (name.length() == 2) {
                            assertEquals("", refusal(command, option, name + value));
                        }
                    }
                    forms++;
                }
            }
        }
        assertTrue(forms > 100, forms + " forms");
    }

    /** Why a command does not take arguments of an option; what else the command needs is no reason. */
    private static String refusal(CommandLine command, OptionSpec option, String... arguments) {
        String name = command.getCommandName();
        CommandLine nccl4j = Main.commandLine(name);
        try {
            nccl4j.parseArgs(
                    Stream.concat(Stream.of(name), Stream.of(arguments)).toArray(String[]::new));
            OptionSpec parsed =
                    nccl4j.getSubcommands().get(name).getCommandSpec().findOption(option.names()[0]);
            return parsed.getValue() == null ? "has no value" : "";
        } catch (MissingParameterException missing) {
            return missing.getMissing().stream().anyMatch(arg -> arg.equals(option)) ? missing.getMessage() : "";
        } catch (ParameterException refused) {
            return name + " " + String.join(" ", arguments) + ": " + refused.getMessage();
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"perf all_reduce --jvm=-Dx=y", "perf all_reduce --jvm -Dx=y", "run 02 -J-ea", "run 02 -J -ea"})
    void anOptionForJvmsMayHaveTheNameOfOneOfTheCommand(String arguments) {
        CommandLine.ParseResult parsed = Main.commandLine(arguments.split(" ")).parseArgs(arguments.split(" "));
        while (parsed.hasSubcommand()) {
            parsed = parsed.subcommand();
        }
        List<String> expected = List.of(arguments.substring(arguments.lastIndexOf("-")));
        OptionSpec option = parsed.commandSpec().findOption(arguments.contains("jvm") ? "--jvm" : "-J");
        assertEquals(expected, option.getValue());
    }

    @Test
    void commandLineHasOnlyTheRequestedCommand() {
        assertEquals(
                Set.of("perf"),
                Main.commandLine("perf", "all_reduce").getSubcommands().keySet());
        assertEquals(
                Main.commandLine().getSubcommands().keySet(),
                Main.commandLine("unknown").getSubcommands().keySet());
        for (String name : Main.commandLine().getSubcommands().keySet()) {
            assertEquals(
                    name,
                    Main.commandLine(name)
                            .getSubcommands()
                            .get(name)
                            .getCommandSpec()
                            .name(),
                    "the name that the class declares");
        }
    }
}
