package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tests.ChildJvm.Outcome;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which form of ncclAlltoAllv a library has, found without a crash and called in no other. */
class AlltoAllvFormTest {
    private static final String PROPERTY = "nccl4j.vccl.alltoallv";

    @TempDir
    Path folder;

    private Path log;

    @BeforeEach
    void noCallsYet() {
        log = folder.resolve("calls");
    }

    private String run(Map<String, Object> properties, String... scenario) {
        ChildJvm jvm = new ChildJvm().environment("STUB_LOG", log.toString());
        properties.forEach(jvm::property);
        Outcome outcome = jvm.run(LoadingScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output();
    }

    private String run(Path library, String... scenario) {
        return run(Map.of("nccl4j.library", library), scenario);
    }

    /** The functions that the library's stub was called by, one line each. */
    private String calls() throws IOException {
        return Files.exists(log) ? Files.readString(log) : "";
    }

    private static String lines(String... lines) {
        return String.join("\n", lines) + "\n";
    }

    /** The lines of a program that calls all forms, on a library that has none of them. */
    private static String refused(String reason, int form) {
        return lines(
                "ncclAlltoAllv was called with 11 arguments, but " + reason,
                "ncclAlltoAllv was called with 10 arguments, but " + reason,
                "ncclAlltoAllv was called with 9 arguments, but " + reason,
                "form " + form);
    }

    private static String unknown(Path library, String reason) {
        return refused(
                "how many " + library + " (NCCL 2.29.2) takes is not known (" + reason + "): declare it by the system"
                        + " property nccl4j.vccl.alltoallv or the environment variable NCCL4J_VCCL_ALLTOALLV, 9, 10 or 11",
                -1);
    }

    private static String nine(String library) {
        return lines(
                "ncclAlltoAllv was called with 11 arguments, but " + library + " 9",
                "ncclAlltoAllv was called with 10 arguments, but " + library + " 9",
                "raw 9 returned 0",
                "form 9");
    }

    private static String rccl(Path library) {
        return nine(library + " (NCCL 2.29.2) is RCCL, whose form takes");
    }

    /** How often the program's stub was called for ncclAlltoAllv, and forgets it. */
    private long allToAllvCalls() throws IOException {
        long count = calls().lines().filter("ncclAlltoAllv"::equals).count();
        Files.deleteIfExists(log);
        return count;
    }

    private static String vccl(Path library, int form) {
        return form == 10
                ? lines(
                        "ncclAlltoAllv was called with 11 arguments, but " + library + " (NCCL 2.29.2) takes 10",
                        "raw 10 returned 0",
                        "ncclAlltoAllv was called with 9 arguments, but " + library + " (NCCL 2.29.2) takes 10",
                        "form 10")
                : lines(
                        "raw 11 returned 0",
                        "ncclAlltoAllv was called with 10 arguments, but " + library + " (NCCL 2.29.2) takes 11",
                        "ncclAlltoAllv was called with 9 arguments, but " + library + " (NCCL 2.29.2) takes 11",
                        "form 11");
    }

    @Test
    void theFormsOfAlltoAllvAreToldApartAndGuarded() throws IOException {
        Path ten = StubLibraries.vccl10(folder);
        String wrong = " was called with 11 arguments, but " + ten + " (NCCL 2.29.2) takes 10";
        String nine = wrong.replace(" 11 arguments", " 9 arguments");
        assertEquals(
                String.join(
                        "\n",
                        "form 10",
                        "ncclAlltoAllv" + wrong,
                        "raw 10 returned 0",
                        "ncclAlltoAllv" + nine,
                        "pncclAlltoAllv" + wrong,
                        "profiler 10 returned 0",
                        "pncclAlltoAllv" + nine,
                        "ncclAlltoAllv" + wrong,
                        "pointer 10 returned 4",
                        "ncclAlltoAllv" + nine,
                        ""),
                run(ten, "forms"));

        Path eleven = StubLibraries.vccl11(folder);
        wrong = " was called with 10 arguments, but " + eleven + " (NCCL 2.29.2) takes 11";
        nine = wrong.replace(" 10 arguments", " 9 arguments");
        assertEquals(
                String.join(
                        "\n",
                        "form 11",
                        "raw 11 returned 0",
                        "ncclAlltoAllv" + wrong,
                        "ncclAlltoAllv" + nine,
                        "profiler 11 returned 0",
                        "pncclAlltoAllv" + wrong,
                        "pncclAlltoAllv" + nine,
                        "pointer 11 returned 4",
                        "ncclAlltoAllv" + wrong,
                        "ncclAlltoAllv" + nine,
                        ""),
                run(eleven, "forms"));
    }

    @Test
    void rcclIsCalledInItsOwnFormAlone() throws IOException {
        Path rccl = StubLibraries.rcclShape(folder, "rccl", "");
        String takes = " arguments, but " + rccl + " (NCCL 2.29.2) is RCCL, whose form takes 9";
        assertEquals(
                lines(
                        "form 9",
                        "ncclAlltoAllv was called with 11" + takes,
                        "ncclAlltoAllv was called with 10" + takes,
                        "raw 9 returned 0",
                        "pncclAlltoAllv was called with 11" + takes,
                        "pncclAlltoAllv was called with 10" + takes,
                        "profiler 9 returned 0",
                        "ncclAlltoAllv was called with 11" + takes,
                        "ncclAlltoAllv was called with 10" + takes,
                        // The stub wants the stream 11, which a Pointer form has not.
                        "pointer 9 returned 3"),
                run(rccl, "forms"));
    }

    @Test
    void aFormThatCountsBeforeItChecksIsFoundWithoutACrash() throws IOException {
        Path ten = StubLibraries.countingVccl10(folder);
        assertEquals(vccl(ten, 10), run(ten, "raw-forms"));
        Path eleven = StubLibraries.countingVccl11(folder);
        assertEquals(vccl(eleven, 11), run(eleven, "raw-forms"));
    }

    @Test
    void rcclIsKnownByItsNameWithoutACall() throws IOException {
        Path plain = StubLibraries.rcclShape(folder, "rccl", "");
        assertEquals(rccl(plain), run(plain, "raw-forms"));
        Path versioned = Files.move(plain, folder.resolve("librccl.so.1.0"));
        Path link = Files.createSymbolicLink(folder.resolve("libnccl.so.2"), versioned.getFileName());
        assertEquals(1, allToAllvCalls());
        assertEquals(rccl(link), run(link, "raw-forms"));
        assertEquals(1, allToAllvCalls());
    }

    @ParameterizedTest
    @ValueSource(strings = {"ncclAllReduceWithBias", "hipGetDeviceCount"})
    void rcclIsKnownByASymbolWithoutACall(String symbol) throws IOException {
        String more = "extern \"C\" int " + symbol + "() { return 3; }\n";
        for (Path library : List.of(
                StubLibraries.rcclShape(folder, "traced", more),
                StubLibraries.nineOther(folder, "untraced", more),
                StubLibraries.rcclShape(folder, "both", more + StubLibraries.VCCL_TEXT))) {
            assertEquals(rccl(library), run(library, "raw-forms"));
            assertEquals(1, allToAllvCalls());
            // It is VCCL's form that is declared.
            assertEquals(rccl(library), run(Map.of("nccl4j.library", library, PROPERTY, 10), "raw-forms"));
            assertEquals(1, allToAllvCalls());
        }
    }

    @Test
    void aLibraryWithoutASignOfWhatItIsIsNeverCalled() throws IOException {
        for (Path library : List.of(
                StubLibraries.rcclShape(folder, "traced", ""), StubLibraries.nineOther(folder, "untraced", ""))) {
            assertEquals(unknown(library, "it has no sign of being RCCL or VCCL"), run(library, "raw-forms"));
            assertEquals(0, allToAllvCalls());
            assertEquals(
                    nine(library + " (NCCL 2.29.2) takes"),
                    run(Map.of("nccl4j.library", library, PROPERTY, 9), "raw-forms"));
            assertEquals(1, allToAllvCalls());
        }
    }

    /** The library says VCCL's text, so it is called; it must survive that and not be taken for one of VCCL's forms. */
    @Test
    void otherFormsOfVcclAreRefused() throws IOException {
        String reason = "its communicator is neither argument 9 nor argument 10";
        for (Path library : List.of(
                StubLibraries.rcclShape(folder, "traced", StubLibraries.VCCL_TEXT),
                StubLibraries.nineOther(folder, "untraced", StubLibraries.VCCL_TEXT),
                StubLibraries.twelve(folder))) {
            assertEquals(unknown(library, reason), run(library, "raw-forms"));
        }
    }

    @Test
    void anAnswerThatIsNotUnderstoodIsRefusedUnlessDeclared() throws IOException {
        Path library = StubLibraries.vcclOfAnotherForm(folder);
        assertEquals(
                unknown(library, "it answered 5, 'something else'").replace("2.29.2", "2.31.0"),
                run(library, "raw-forms"));
        assertEquals(
                lines(
                        "ncclAlltoAllv was called with 11 arguments, but " + library + " (NCCL 2.31.0) takes 10",
                        "raw 10 returned 5",
                        "ncclAlltoAllv was called with 9 arguments, but " + library + " (NCCL 2.31.0) takes 10",
                        "form 10"),
                run(Map.of("nccl4j.library", library, PROPERTY, 10), "raw-forms"));
        String message = PROPERTY + " (NCCL4J_VCCL_ALLTOALLV) is '12'; it must be 9, 10, 11 or auto";
        assertEquals(
                lines(message, message),
                run(Map.of("nccl4j.library", library, PROPERTY, 12), "call", "ncclGetVersion"));
    }

    @Test
    void theVersionIsAskedWithoutAnyOtherCall() throws IOException {
        for (Path library : List.of(
                StubLibraries.vccl10(folder),
                StubLibraries.countingVccl11(folder),
                StubLibraries.rcclShape(folder, "unknown", ""),
                StubLibraries.rcclShape(folder, "bias", StubLibraries.BIAS))) {
            Files.deleteIfExists(log);
            String name = library.getFileName().toString();
            String expected = name.equals("libunknown.so")
                    ? "2.29.2 nccl false true NCCL\n"
                    : name.equals("libbias.so") ? "2.29.2 rccl false true RCCL\n" : "2.29.2 nccl true true VCCL\n";
            assertEquals(expected, run(library, "version"));
            assertEquals("ncclGetVersion\n", calls());
        }
    }

    @Test
    void aDeclaredFormIsNotCalledToTellIt() throws IOException {
        Path library = StubLibraries.vccl10(folder);
        assertEquals(vccl(library, 10), run(Map.of("nccl4j.library", library, PROPERTY, 10), "raw-forms"));
        assertEquals("ncclGetVersion\nncclAlltoAllv\n", calls());
    }

    @Test
    void theFirstUseLeavesAnOpenGroupAlone() throws IOException {
        assertEquals(lines("10 returned 0", "end returned 0"), run(StubLibraries.vccl10(folder), "group"));
    }

    /** Another user of the process has loaded a file of the same name before. */
    @Test
    void eachOfTwoLibrariesOfOneNameHasItsOwnForm() throws IOException {
        Path ten = StubLibraries.vccl10(Files.createDirectory(folder.resolve("ten")));
        Path nine = StubLibraries.rcclShape(Files.createDirectory(folder.resolve("nine")), "nine", "");
        Path bias = StubLibraries.rcclShape(Files.createDirectory(folder.resolve("bias")), "bias", StubLibraries.BIAS);
        for (Path library : List.of(ten, nine, bias)) {
            Files.move(library, library.resolveSibling("libnccl.so.2"));
        }
        ten = ten.resolveSibling("libnccl.so.2");
        nine = nine.resolveSibling("libnccl.so.2");
        bias = bias.resolveSibling("libnccl.so.2");
        assertEquals(vccl(ten, 10), run(ten, "beside", nine.toString()));
        assertEquals(vccl(ten, 10), run(ten, "beside", bias.toString()));
        assertEquals(unknown(nine, "it has no sign of being RCCL or VCCL"), run(nine, "beside", ten.toString()));
        assertEquals(rccl(bias), run(bias, "beside", ten.toString()));
    }

    @Test
    void theHostEnginesFormIsKnownWhateverIsDeclared() {
        String output = run(Map.of("nccl4j.engine", "host", PROPERTY, 10), "describe");
        assertEquals("form 11", output.lines().reduce("", (before, line) -> line), output);
    }

    /** Symmetric windows on the host engine, with and without an ncclAlltoAllv of another form before its own. */
    @Test
    void onlyAKnownFormIsUsedByAllToAllv() throws IOException {
        Outcome host = new ChildJvm().property("nccl4j.engine", "host").run(AlltoAllvScenario.class);
        assertEquals("ELEVEN_ARGUMENTS native true\n", host.output());
        Outcome ten = new ChildJvm()
                .property("nccl4j.engine", "host")
                .environment("NCCL4J_HOST_ALLTOALLV", "10")
                .run(AlltoAllvScenario.class);
        assertEquals("TEN_ARGUMENTS native true\n", ten.output());
        Path engine = Path.of(NativeLibrary.path());
        Outcome unknown = new ChildJvm()
                .property("nccl4j.library", StubLibraries.unknownOver(folder, engine))
                .run(AlltoAllvScenario.class);
        assertEquals("UNKNOWN native false\n", unknown.output());
    }

    /** RCCL's form on three ranks, in a library that is RCCL, and in one of which only the setting says its form. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void rcclsFormGetsTheRowsOfItsRank(boolean isRccl) throws IOException {
        Path engine = Path.of(NativeLibrary.path());
        Path library = StubLibraries.nineOver(folder, engine, "nine", isRccl ? StubLibraries.BIAS : "");
        ChildJvm jvm = new ChildJvm().environment("STUB_LOG", log.toString()).property("nccl4j.library", library);
        if (!isRccl) {
            jvm.property(PROPERTY, 9);
        }
        Outcome outcome = jvm.run(RcclScenario.class);
        assertEquals(0, outcome.exitCode(), outcome.output());
        assertEquals("""
                NINE_ARGUMENTS native true
                alone: right
                in windows: right
                in a group: right
                told: 0 sent 6, 1 sent 12, 2 sent 18
                """, outcome.output());
        // Twice each: with buffers anywhere and in windows; the group does without.
        String rows = lines(
                "0: 1 2 3 at 0 1 3, 1 3 5 at 0 2 5",
                "1: 3 4 5 at 0 3 7, 2 4 6 at 0 3 7",
                "2: 5 6 7 at 0 5 11, 3 5 7 at 0 4 9");
        assertEquals(
                (rows + rows).lines().sorted().toList(),
                calls().lines().sorted().toList());
    }

    @Test
    void theAllReduceWithABiasIsRcclsAlone() throws IOException {
        Path rccl = StubLibraries.rcclShape(folder, "bias", StubLibraries.BIAS);
        assertEquals("raw returned 0\nprofiler returned 0\n", run(rccl, "bias"));
        Path vccl = StubLibraries.vccl10(folder);
        String missing = "ncclAllReduceWithBias is not provided by " + vccl + " (NCCL 2.29.2); it came with RCCL\n";
        assertEquals(missing + "p" + missing, run(vccl, "bias"));
    }
}
