package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.launch.ChildProcesses;
import io.github.nccl4j.tools.support.ErrorsPage;
import io.github.nccl4j.tools.support.ToolsJar;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

class ExplainCommandTest {
    private static final Path PAGE = Path.of("../docs/errors.md");

    private static final String MISSING = """
            NCCL4J-0208: rank.missing

            A rank did not reach a collective, or a call such as split, in which other ranks
            wait.

            1. With a record:\s""";

    private final StringWriter out = new StringWriter();

    private String explain(String... ids) {
        out.getBuffer().setLength(0);
        CommandLine command = new CommandLine(new ExplainCommand()).setOut(new PrintWriter(out));
        assertEquals(0, command.execute(ids));
        return out.toString();
    }

    @Test
    void theCommandHasThePageOfTheDocumentation() throws IOException {
        byte[] packaged = ErrorsPage.class.getResourceAsStream("errors.md").readAllBytes();
        assertEquals(Files.readString(PAGE), new String(packaged, StandardCharsets.UTF_8));
    }

    @Test
    void theJarNeedsNoOtherFile() throws Exception {
        Process jar = ChildProcesses.start(ToolsJar.command(List.of("explain", "0208")));
        assertEquals("NCCL4J-0208: rank.missing", SamplesTest.output(jar).get(0));
        assertEquals(0, jar.waitFor());
    }

    /** The words of each section, without marks, in lines that fit a terminal; each remedy with its number. */
    @Test
    void everySectionIsPrinted() throws IOException {
        List<String> sections =
                List.of(Files.readString(PAGE).replaceAll("(?m)^## .*\n", "").split("(?m)^### "));
        List<String> headings = explain().lines().toList();
        assertEquals(sections.size() - 1, headings.size());
        for (int i = 0; i < headings.size(); i++) {
            String section = sections.get(i + 1);
            String text = explain(headings.get(i).substring(0, "NCCL4J-0000".length()));
            assertTrue(text.startsWith(headings.get(i) + "\n\n"), text);
            assertEquals(numbers(section), numbers(text));
            String unlinked = section.replaceAll("]\\([^)]*\\)", "").replaceAll("[`\\[]", "");
            assertEquals(
                    words(unlinked),
                    words(text.replaceAll("\\s+\\((https://[^\\s)]+|(docs/)?[A-Za-z-]+\\.md)\\)", "")));
            assertFalse(Pattern.compile("`|]\\(|.{81}").matcher(text).find(), text);
        }
    }

    private static List<String> words(String text) {
        return List.of(text.strip().split("\\s+"));
    }

    private static List<String> numbers(String text) {
        return Pattern.compile("(?m)^\\d+\\. ")
                .matcher(text)
                .results()
                .map(found -> found.group())
                .toList();
    }

    @ParameterizedTest
    @ValueSource(strings = {"NCCL4J-0208", "nccl4j-0208", "Nccl4j-208", "0208", "208", "rank.missing", "RANK.Missing"})
    void anIdHasSeveralForms(String id) {
        assertTrue(explain(id).startsWith(MISSING), out::toString);
    }

    @Test
    void severalIdsAreExplainedInTheirOrder() {
        assertEquals(explain("12") + "\n" + explain("RasException"), explain("0012", "15"));
    }

    @Test
    void aLinkIsItsTextAndThePage() {
        String text = explain("2", "10");
        assertTrue(text.contains("declare the form (docs/vccl.md)."), text);
        assertTrue(text.replaceAll("\\s+", " ").contains("ask provides (docs/library.md) before the call"), text);
        assertTrue(text.contains("README (README.md)."), text);
    }
}
