package io.github.nccl4j.mutation;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The places of faults, and the tests that meet them. */
class FaultsTest {
    @TempDir
    Path root;

    @ParameterizedTest
    @CsvSource(
            delimiter = '~',
            value = {
                "'  if (count < limit) go();'~if (count <= limit) go();",
                "'  while (a && b) run(a, b);'~while (a || b) run(a, b); while (a && b) run(b, a);",
                "'  close();'~;",
                "'  return size;'~return {};",
                "'  return nullptr;'~",
                "'  return nullptr_t();'~return {};",
                "'  return;'~;",
                "'  total = total + 1;'~total = total; total = total - 1;",
                "'  say(\"a < b\");  // a < b'~",
                "#include <a.h>~",
                "'  // a < b'~",
            })
    void linesOfNativeCodeAreChanged(String line, String expected) throws IOException {
        write("nccl-host/src/main/cpp/some.cpp", line);
        List<Fault> faults = CxxFaults.all(root, "nccl-host");
        String joined = String.join(
                " ",
                faults.stream()
                        .map(fault -> fault.description().replace("became: ", ""))
                        .toList());
        assertEquals(expected == null ? "" : expected, joined);
        assertTrue(faults.stream().allMatch(fault -> fault.line() == 1), faults::toString);
    }

    @Test
    void nativeCodeOfTheBindingsHasFaults() throws IOException {
        write("nccl-presets/src/main/native/glue/glue.h", "  close();");
        write("nccl-presets/src/main/native/portable/sys/portable.h", "  close();");
        write("nccl-presets/src/main/native/shim/shim.h", "  close();");
        write("nccl-presets/src/main/native/include/nccl.h", "  close();");
        assertEquals(
                List.of("glue/glue.h", "portable/sys/portable.h", "shim/shim.h"),
                CxxFaults.all(root, "nccl-presets").stream()
                        .map(fault -> fault.path().split("/native/")[1])
                        .toList());
    }

    @ParameterizedTest
    @CsvSource({
        "nccl-host/src/main/cpp/ras.cpp, nccl-host",
        "nccl-presets/src/main/native/glue/nccl4j_profiler.h, nccl-presets native",
        "nccl-presets/src/main/java/io/github/nccl4j/launch/store/Secret.java, nccl-presets launch",
        "nccl-presets/src/main/java/io/github/nccl4j/internal/operation/Bounds.java, nccl-presets internal.operation",
        "nccl-tools/src/main/java/io/github/nccl4j/tools/Main.java, nccl-tools",
    })
    void rowsAreModulesAndPackages(String path, String row) {
        assertEquals(row, new Fault(path, 1, "", null).row());
    }

    @ParameterizedTest
    @CsvSource({
        "nccl-host/src/main/cpp/ras.cpp, NativeSuiteTest, true",
        "nccl-host/src/main/cpp/ras.cpp, ProfilerTest, false",
        "nccl-presets/src/main/native/glue/nccl4j_profiler.h, ProfilerTest, true",
        "nccl-presets/src/main/native/glue/nccl4j_profiler.h, LibraryLoadingTest, false",
        "nccl-presets/src/main/native/glue/nccl4j_library.h, LibraryLoadingTest, true",
        "nccl-presets/src/main/native/portable/library_file.h, NativeSuiteTest, true",
        "nccl-presets/src/main/java/io/github/nccl4j/launch/Locate.java, NativeSuiteTest, false",
    })
    void testsOfNativeCodeAreKnownByName(String path, String test, boolean reached) {
        assertEquals(
                reached, new TestClass("tests", "p." + test, 1, true, Map.of()).reaches(new Fault(path, 1, "", null)));
    }

    @Test
    void recordIsReadUntilASourceChanges() throws IOException {
        write("m/src/test/java/p/SomeTest.java", "test");
        write("m/src/main/java/p/Some.java", "some");
        BitSet lines = new BitSet();
        lines.set(3);
        lines.set(70);
        TestClass test = new TestClass("m", "p.SomeTest", 1.5, true, Map.of("m/src/main/java/p/Some.java", lines));
        Path file = root.resolve("records/some");
        assertNull(TestClass.read(root, file, "m", "p.SomeTest"));
        test.write(root, file);
        TestClass read = TestClass.read(root, file, "m", "p.SomeTest");
        assertEquals(List.of(1.5, true), List.of(read.seconds(), read.passes()));
        assertTrue(read.reaches(new Fault("m/src/main/java/p/Some.java", 70, "", null)));
        assertFalse(read.reaches(new Fault("m/src/main/java/p/Some.java", 71, "", null)));
        write("m/src/main/java/p/Some.java", "other");
        assertNull(TestClass.read(root, file, "m", "p.SomeTest"));
    }

    private void write(String path, String text) throws IOException {
        Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text + "\n");
    }
}
