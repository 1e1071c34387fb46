package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What programs learn of their library. */
class NcclLibraryTest {
    @TempDir
    static Path folder;

    private static String run(Path library, String... scenario) {
        ChildJvm jvm = new ChildJvm();
        if (library != null) {
            jvm.property("nccl4j.library", library);
        }
        ChildJvm.Outcome outcome = jvm.run(HighlevelScenarios.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output();
    }

    private static String described(String words, Path path, String version, String flavor, String form, String cuda) {
        return words + " " + version + " from " + path + "\npath " + path + "\nversion " + version
                + "\nengine nccl\nflavor " + flavor + "\nform " + form + "\ncuda " + cuda + "\ncuda " + cuda
                + "\nsame true\n";
    }

    @Test
    void stockNcclIsKnownByItsFunctions() throws IOException {
        Path library = StubLibraries.small(folder, 21801);
        assertEquals(described("NCCL", library, "2.18.1", "NCCL", "ABSENT", "unknown"), run(library, "describe"));
    }

    @Test
    void readsCudaReleaseFromBanner() throws IOException {
        Path library = StubLibraries.failing(folder, 22703);
        assertEquals(described("NCCL", library, "2.27.3", "NCCL", "ABSENT", "12.9"), run(library, "describe"));
    }

    @Test
    void vcclIsKnownByItsVersionOrItsTexts() throws IOException {
        for (int code : new int[] {22662, 22669}) {
            Path library = StubLibraries.small(folder, code);
            String version = "2.26." + code % 100;
            assertEquals(described("VCCL", library, version, "VCCL", "ABSENT", "unknown"), run(library, "describe"));
        }
        Path ten = StubLibraries.vccl10(folder);
        assertEquals(described("VCCL", ten, "2.29.2", "VCCL", "TEN_ARGUMENTS", "unknown"), run(ten, "describe"));
        Path eleven = StubLibraries.vccl11(folder);
        assertEquals(
                described("VCCL", eleven, "2.29.2", "VCCL", "ELEVEN_ARGUMENTS", "unknown"), run(eleven, "describe"));
        Path other = StubLibraries.vcclOfAnotherForm(folder);
        assertEquals(described("VCCL", other, "2.31.0", "VCCL", "UNKNOWN", "unknown"), run(other, "describe"));
        Path unmarked = StubLibraries.nineOther(folder, "unmarked", "");
        assertEquals(described("NCCL", unmarked, "2.29.2", "NCCL", "UNKNOWN", "unknown"), run(unmarked, "describe"));
    }

    @Test
    void vecclIsKnownByItsFunctions() throws IOException {
        Path library = StubLibraries.veccl(folder);
        assertEquals(described("veCCL", library, "2.27.7", "VECCL", "ABSENT", "12.2"), run(library, "describe"));
    }

    @Test
    void rcclIsKnownByItsName() throws IOException {
        Path library = Files.copy(StubLibraries.small(folder, 22203), folder.resolve("librccl.so.1"));
        assertEquals(
                described("RCCL", library, "2.22.3", "RCCL", "ABSENT", "unknown")
                        .replace("engine nccl", "engine rccl"),
                run(library, "describe"));
    }

    @Test
    void theHostEngineIsKnown() {
        NcclLibrary library = NcclLibrary.get();
        assertEquals(Engine.HOST, library.engine());
        assertEquals(NcclLibrary.Flavor.HOST, library.flavor());
        assertTrue(library.cudaVersion().isEmpty());
        assertTrue(library.provides("ncclAllReduce"));
        library.require("ncclAllReduce");
        assertEquals("host engine " + library.version() + " from " + library.path(), library.toString());
    }

    @Test
    void missingFileHasNoCudaRelease() throws IOException {
        Path library = Cxx.library(folder, "gone", String.format(Locale.ROOT, """
                #include <cstdio>
                static const char* path = "%s";
                extern "C" int ncclGetVersion(int* version) { *version = 22703; return remove(path); }
                """, folder.resolve("libgone.so")));
        assertTrue(run(library, "describe").contains("cuda unknown\n"));
    }

    @Test
    void aProgramChoosesItsLibraryOnce() throws IOException {
        Path first = StubLibraries.small(folder, 21903);
        Path second = StubLibraries.small(folder, 22005);
        String output = run(null, "load", first.toString(), second.toString());
        String[] lines = output.split("\n");
        assertEquals("NcclLibraryException: NCCL could not be loaded; tried in this order:", lines[0]);
        assertEquals("  /nowhere/libnccl.so.2: No such file or directory", lines[1]);
        String rest = output.substring(output.indexOf("loaded "));
        assertEquals(
                "loaded false\nNCCL 2.19.3 from " + first
                        + "\nok\nloaded true\nNcclLibraryException: NCCL is already loaded"
                        + " from " + first + " (NCCL 2.19.3) and stays so for the life of this process; it cannot be"
                        + " changed to " + second + "\ntrue\nok\nNCCL 2.19.3 from " + first + "\n",
                rest);
    }

    @Test
    void aProgramChoosesItsEngineOnce() {
        String output = run(null, "load-host");
        assertTrue(
                output.startsWith("HOST\nok\ntrue\nok\ntrue\nok\nNcclLibraryException: NCCL is already loaded from "),
                output);
    }

    @Test
    void aMissingFunctionIsNamedWithBothReleases() throws IOException {
        Path library = StubLibraries.small(folder, 22703);
        String loaded = ", loaded is NCCL 2.27.3 from " + library + "\n";
        assertEquals(
                "ok\nNcclLibraryException: ncclCommGrow needs NCCL 2.29.2" + loaded
                        + "NcclLibraryException: pncclCommGrow needs NCCL 2.29.2" + loaded
                        + "NcclLibraryException: ncclAlltoAllv needs VCCL a2av_base or RCCL 2.28" + loaded
                        + "NcclLibraryException: ncclX is not a function that nccl4j knows" + loaded,
                run(library, "require"));
    }

    @Test
    void onlyNcclsOwnVariablesCanBeSet() {
        for (String name : new String[] {"PATH", "NCCL4J_ENGINE", "NCCL_A=B", "nccl_debug", ""}) {
            IllegalArgumentException e =
                    assertThrows(IllegalArgumentException.class, () -> NativeLibrary.setVariable(name, "x"));
            assertEquals("name must be that of a variable of NCCL, NCCL_...: '" + name + "'", e.getMessage());
        }
    }
}
