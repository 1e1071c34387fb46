package io.github.nccl4j.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.tools.doctor.Report.Section;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(600)
class DoctorTest {
    @TempDir
    Path root;

    @Test
    void reportHasAllSections() {
        Machine machine = new TestMachine(root)
                .result(
                        "library",
                        0,
                        "candidate\t/n.so\t\npath\t/n.so\nversion\t2.28.3\nflavor\tNCCL\nform\tABSENT\ncuda\t13.0\n")
                .result("gpus", 0, "count\t2\ndriver\t13000\nruntime\t13000\npeer\t0\t1\t1\n")
                .result("-m", 0, "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n")
                .network("eth0", true, "10.0.0.1")
                .file("/proc/mounts", "shm /dev/shm tmpfs rw,size=2g 0 0")
                .build();
        Report report = new Doctor(machine, Choice.HOST, List.of("Main"))
                .examine("title", Optional.empty(), OptionalLong.empty(), Optional.empty());
        assertEquals(
                List.of("NCCL library", "GPUs", "RDMA", "network", "settings", "limits", "container", "launcher"),
                report.sections().stream().map(Section::name).toList());
        assertEquals(0, report.exitCode(), report.text());
        assertTrue(report.text().contains("GPU0 - GPU1: 18 NVLinks"), report.text());
        assertTrue(report.text().endsWith("\nNo problem was found.\n"), report.text());
    }

    /** No program can be started on this machine. */
    @Test
    void reportsEvenOnAnEmptyMachine() {
        Report report = new Doctor(new TestMachine(root).build(), Choice.HOST, List.of("Main"))
                .examine("title", Optional.empty(), OptionalLong.of(1), Optional.empty());
        assertEquals(1, report.exitCode());
        assertTrue(report.text().contains("the process that loaded the library died"), report.text());
    }

    @Test
    void formatsTextAndJson() {
        Report report = new Report(
                "title",
                List.of(new Section(
                        "one",
                        List.of(
                                Finding.ok("a.b", "fine"),
                                Finding.warning("rdma.port", "quote \" and \\", "It is so.", "do this"),
                                Finding.problem(
                                                "e.f",
                                                "bad\ttab",
                                                "m",
                                                "word ".repeat(30).strip())
                                        .with(List.of("x", "y"))))));
        assertEquals("""
                title

                one
                  ok       fine
                  warning  quote " and \\ [NCCL4J-0113]
                           It is so.
                           -> do this
                  problem  bad\ttab
                             x
                             y
                           m
                           -> word word word word word word word word word word word word word word word word word word word
                           word word word word word word word word word word word

                1 problem, 1 warning. nccl4j explain 0113 says more.
                """, report.text());
        assertEquals(
                "{\"title\":\"title\",\"status\":\"problem\",\"findings\":["
                        + "{\"section\":\"one\",\"id\":\"a.b\",\"help\":\"\",\"level\":\"ok\",\"text\":\"fine\",\"meaning\":\"\","
                        + "\"advice\":\"\",\"details\":[]},"
                        + "{\"section\":\"one\",\"id\":\"rdma.port\",\"help\":\"NCCL4J-0113\",\"level\":\"warning\",\"text\":\"quote \\\" and \\\\\","
                        + "\"meaning\":\"It is so.\",\"advice\":\"do this\",\"details\":[]},"
                        + "{\"section\":\"one\",\"id\":\"e.f\",\"help\":\"\",\"level\":\"problem\",\"text\":\"bad\\ttab\","
                        + "\"meaning\":\"m\",\"advice\":\"" + "word ".repeat(30).strip()
                        + "\",\"details\":[\"x\",\"y\"]}]}",
                report.json());
    }

    @Test
    void choiceEqualsThatOfAnApplication() {
        Properties properties = new Properties();
        Map<String, String> environment = Map.of("NCCL4J_LIBRARY", "/l.so", "NCCL4J_ENGINE", "rccl");
        assertEquals(
                "NCCL4J_LIBRARY", Choice.of(null, null, properties, environment).text());
        assertEquals(
                "the default, engine nccl",
                Choice.of(null, null, properties, Map.of()).text());
        assertEquals(
                "NCCL4J_ENGINE=rccl",
                Choice.of(null, null, properties, Map.of("NCCL4J_ENGINE", "rccl"))
                        .text());
        properties.setProperty("nccl4j.engine", "host");
        // A library takes precedence over an engine from any other source than an option.
        assertEquals(
                "NCCL4J_LIBRARY", Choice.of(null, null, properties, environment).text());
        assertEquals(
                "--engine auto",
                Choice.of("auto", null, properties, environment).text());
        Choice option = Choice.of("auto", "/o.so", properties, environment);
        assertEquals(Map.of("NCCL4J_LIBRARY", "/o.so", "NCCL4J_ENGINE", ""), option.environment());
        properties.setProperty("nccl4j.library", "/p.so");
        assertEquals(
                "/p.so",
                Choice.of(null, null, properties, environment).environment().get("NCCL4J_LIBRARY"));
    }

    @Test
    void commandsReportTimeoutsAndMissingPrograms() {
        Commands commands = Commands.ofThisMachine();
        Commands.Result late = commands.run(List.of("sleep", "50"), Map.of(), Duration.ofMillis(200));
        assertEquals(Commands.Result.TIMED_OUT, late.code());
        assertEquals("timed out", late.failure());
        Commands.Result missing = commands.run(List.of("/no/such/program"), Map.of(), Duration.ofSeconds(5));
        assertEquals(Commands.Result.MISSING, missing.code());
        Commands.Result both = commands.run(
                List.of("sh", "-c", "echo $WORD; echo bad >&2; exit 3"),
                Map.of("WORD", "good"),
                Duration.ofSeconds(20));
        assertEquals(new Commands.Result(3, "good\n", "bad\n"), both);
        assertEquals("exit code 3: bad", both.failure());
    }

    @Test
    void unescapesTabsAndNewlines() {
        assertEquals("a\tb\nc\\n", Probe.unescape("a\\tb\\nc\\\\n"));
    }

    @Test
    void printedValuesAreReadAgain() {
        String value = "C:\\new\ttable\nnext \\\\";
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            Probe.print("copy", value, 7);
        } finally {
            System.setOut(before);
        }
        String line = printed.toString(StandardCharsets.UTF_8);
        assertEquals(1, line.lines().count(), line);
        assertEquals(
                List.of("copy", value, "7"),
                Stream.of(line.stripTrailing().split("\t")).map(Probe::unescape).toList());
    }
}
