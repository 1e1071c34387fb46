package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

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
    private static final String NINE = "extern \"C\" int ncclAllReduceWithBias() { return 3; }\n";

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

    /** What the two calls of a program say that has neither form. */
    private static String refused(String reason, int form) {
        return lines(
                "ncclAlltoAllv was called with 11 arguments, but " + reason,
                "ncclAlltoAllv was called with 10 arguments, but " + reason,
                "form " + form);
    }

    private static String unknown(Path library, String reason) {
        return refused(
                "how many " + library + " (NCCL 2.29.2) takes is not known (" + reason + "): declare it by the system"
                        + " property nccl4j.vccl.alltoallv or the environment variable NCCL4J_VCCL_ALLTOALLV, 9, 10 or 11",
                -1);
    }

    private static String rccl(Path library) {
        return refused(library + " (NCCL 2.29.2) is RCCL, whose form takes 9", 9);
    }

    private static String vccl(Path library, int form) {
        return form == 10
                ? lines(
                        "ncclAlltoAllv was called with 11 arguments, but " + library + " (NCCL 2.29.2) takes 10",
                        "raw 10 returned 0",
                        "form 10")
                : lines(
                        "raw 11 returned 0",
                        "ncclAlltoAllv was called with 10 arguments, but " + library + " (NCCL 2.29.2) takes 11",
                        "form 11");
    }

    @Test
    void bothFormsOfAlltoAllvAreToldApartAndGuarded() throws IOException {
        Path ten = StubLibraries.vccl10(folder);
        String wrong = " was called with 11 arguments, but " + ten + " (NCCL 2.29.2) takes 10";
        assertEquals(
                String.join(
                        "\n",
                        "form 10",
                        "ncclAlltoAllv" + wrong,
                        "raw 10 returned 0",
                        "pncclAlltoAllv" + wrong,
                        "profiler 10 returned 0",
                        "ncclAlltoAllv" + wrong,
                        "pointer 10 returned 4",
                        ""),
                run(ten, "forms"));

        Path eleven = StubLibraries.vccl11(folder);
        wrong = " was called with 10 arguments, but " + eleven + " (NCCL 2.29.2) takes 11";
        assertEquals(
                String.join(
                        "\n",
                        "form 11",
                        "raw 11 returned 0",
                        "ncclAlltoAllv" + wrong,
                        "profiler 11 returned 0",
                        "pncclAlltoAllv" + wrong,
                        "pointer 11 returned 4",
                        "ncclAlltoAllv" + wrong,
                        ""),
                run(eleven, "forms"));
    }

    @Test
    void aFormThatCountsBeforeItChecksIsFoundWithoutACrash() throws IOException {
        Path ten = StubLibraries.countingVccl10(folder);
        assertEquals(vccl(ten, 10), run(ten, "raw-forms"));
        Path eleven = StubLibraries.countingVccl11(folder);
        assertEquals(vccl(eleven, 11), run(eleven, "raw-forms"));
    }

    @Test
    void rcclIsKnownByItsNameAndNeverCalled() throws IOException {
        Path plain = StubLibraries.rcclShape(folder, "rccl", "");
        assertEquals(rccl(plain), run(plain, "raw-forms"));
        Path versioned = Files.move(plain, folder.resolve("librccl.so.1.0"));
        Path link = Files.createSymbolicLink(folder.resolve("libnccl.so.2"), versioned.getFileName());
        assertEquals(rccl(link), run(link, "raw-forms"));
        assertFalse(calls().contains("AlltoAllv"), calls());
    }

    @ParameterizedTest
    @ValueSource(strings = {"ncclAllReduceWithBias", "hipGetDeviceCount"})
    void rcclIsKnownByASymbolAndNeverCalled(String symbol) throws IOException {
        String more = "extern \"C\" int " + symbol + "() { return 3; }\n";
        for (Path library : List.of(
                StubLibraries.rcclShape(folder, "traced", more),
                StubLibraries.nineOther(folder, "untraced", more),
                StubLibraries.rcclShape(folder, "both", more + StubLibraries.VCCL_TEXT))) {
            assertEquals(rccl(library), run(library, "raw-forms"));
            // It is VCCL's form that is declared.
            assertEquals(rccl(library), run(Map.of("nccl4j.library", library, PROPERTY, 10), "raw-forms"));
        }
        assertFalse(calls().contains("AlltoAllv"), calls());
    }

    @Test
    void aLibraryWithoutASignOfWhatItIsIsNeverCalled() throws IOException {
        for (Path library : List.of(
                StubLibraries.rcclShape(folder, "traced", ""), StubLibraries.nineOther(folder, "untraced", ""))) {
            assertEquals(unknown(library, "it has no sign of being RCCL or VCCL"), run(library, "raw-forms"));
            assertEquals(
                    refused(library + " (NCCL 2.29.2) takes 9", 9),
                    run(Map.of("nccl4j.library", library, PROPERTY, 9), "raw-forms"));
        }
        assertFalse(calls().contains("AlltoAllv"), calls());
    }

    /** The library says VCCL's text, so it is called; it must survive that and not be taken for one of VCCL's forms. */
    @Test
    void otherFormsOfVcclAreRefused() throws IOException {
        String reason = "it has its communicator neither at place 9 nor at place 10";
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
                StubLibraries.rcclShape(folder, "bias", NINE))) {
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
        Path bias = StubLibraries.rcclShape(Files.createDirectory(folder.resolve("bias")), "bias", NINE);
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
        Path engine = Path.of(NativeLibrary.path());
        Outcome rccl = new ChildJvm()
                .property("nccl4j.library", StubLibraries.rcclOver(folder, engine))
                .run(AlltoAllvScenario.class);
        assertEquals("NINE_ARGUMENTS native false\n", rccl.output());
        Outcome unknown = new ChildJvm()
                .property("nccl4j.library", StubLibraries.unknownOver(folder, engine))
                .run(AlltoAllvScenario.class);
        assertEquals("UNKNOWN native false\n", unknown.output());
    }
}
