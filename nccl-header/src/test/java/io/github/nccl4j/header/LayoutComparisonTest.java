package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Comparison of given layouts, and layouts computed by a compiler. */
class LayoutComparisonTest {
    private static final Release OURS = Release.of("2.30.7").orElseThrow();

    /** The structure has 12 bytes of fields and 4 bytes of padding. */
    private static final Header HEADER = Header.parse("""
            typedef struct { long a; int b; } s_t;
            typedef enum { one, ncclNumOps } e_t;
            """);

    private static final Map<String, String> LAYOUT = Map.ofEntries(
            Map.entry("sizeof s_t", "16"),
            Map.entry("alignof s_t", "8"),
            Map.entry("offset s_t.a", "0"),
            Map.entry("size s_t.a", "8"),
            Map.entry("offset s_t.b", "8"),
            Map.entry("size s_t.b", "4"),
            Map.entry("sizeof e_t", "4"),
            Map.entry("enumerator one", "0"),
            Map.entry("enumerator ncclNumOps", "1"));

    private static List<String> differences(Header theirs, String release, Map<String, String> layout) {
        Differences differences = new Differences(OURS, Release.of(release).orElseThrow());
        new LayoutComparison(LAYOUT, layout, differences).run(HEADER, theirs);
        return differences.list().stream().map(Difference::toString).toList();
    }

    private static Map<String, String> with(String key, String value) {
        Map<String, String> layout = new TreeMap<>(LAYOUT);
        layout.put(key, value);
        return layout;
    }

    @Test
    void equalLayoutsHaveNoDifference() {
        assertEquals(List.of(), differences(HEADER, "2.30.7", LAYOUT));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "alignof s_t|16|different: alignof s_t: ours 8, theirs 16",
                "offset s_t.b|12|different: offset s_t.b: ours 8, theirs 12",
                "size s_t.b|8|different: size s_t.b: ours 4, theirs 8",
                "enumerator one|1|different: enumerator one: ours 0, theirs 1",
                "sizeof e_t|8|different: sizeof e_t: ours 4, theirs 8",
                "sizeof s_t|24|different: sizeof s_t is 24, expected 16 from the fields in ours"
            })
    void reportsDifferences(String key, String value, String expected) {
        assertEquals(List.of(expected), differences(HEADER, "2.30.7", with(key, value)));
    }

    /** {@link DeclarationComparison} compares counts and reports additions. */
    @Test
    void ignoresCountsAndAdditions() {
        assertEquals(List.of(), differences(HEADER, "2.30.7", with("enumerator ncclNumOps", "2")));
        assertEquals(List.of(), differences(HEADER, "2.30.7", with("enumerator two", "2")));
        Header more = Header.parse("typedef enum { x } other_t;\ntypedef struct { int z; } other_s;\n");
        assertEquals(List.of(), differences(more, "2.30.7", LAYOUT));
    }

    @Test
    void structureWithFewerFieldsMustBeSmaller() {
        Header fewer = Header.parse("typedef struct { int b; } s_t;\n");
        // In ours, field b ends at byte 12.
        assertEquals(List.of(), differences(fewer, "2.30.7", with("sizeof s_t", "16")));
        Header first = Header.parse("typedef struct { long a; } s_t;\n");
        assertEquals(List.of(), differences(first, "2.30.7", with("sizeof s_t", "8")));
        assertEquals(
                List.of("different: sizeof s_t is 16, expected 8 from the fields in ours"),
                differences(first, "2.31.0", LAYOUT));
    }

    @Test
    void structureOfANewerReleaseMayBeLarger() {
        Header more = Header.parse("typedef struct { long a; int b; long c; } s_t;\n");
        assertEquals(
                List.of("newer than nccl4j: sizeof s_t is 24, expected 16 from the fields in ours"),
                differences(more, "2.31.0", with("sizeof s_t", "24")));
        assertEquals(
                List.of("different: sizeof s_t is 24, expected 16 from the fields in ours"),
                differences(more, "2.30.7", with("sizeof s_t", "24")));
    }

    @Test
    void compilerComputesTheLayout(@TempDir Path folder) throws Exception {
        Path file = Files.writeString(folder.resolve("small.h"), """
                typedef struct { long a; int b; char unknown; } s_t;
                typedef struct { int z; } unknown_t;
                typedef enum { one = 1, two } e_t;
                typedef struct { unsigned long size; int magic; int version; const char* name; float f; } ncclConfig_t;
                #define NCCL_CONFIG_INITIALIZER { sizeof(ncclConfig_t), 7, 8, 0, 0.5f }
                #define NCCL_VERSION(x, y, z) ((x) * 10000 + (y) * 100 + (z))
                #define SUM (1 + 2)
                #define CALL(x) (x)
                #define EMPTY
                #define UNKNOWN 5
                #define NCCL_MAJOR 2
                """);
        Header header = Header.parse(file);
        Header names = Header.parse(Files.readString(file)
                .replace(" char unknown;", "")
                .replace("unknown_t", "other_t")
                .replace("UNKNOWN", "OTHER"));
        Map<String, String> layout = new HashMap<>(new Layout("g++", OurHeader.SHIM).of(file, header, names));
        layout.keySet().removeIf(key -> key.startsWith("NCCL_VERSION("));
        assertEquals(
                new TreeMap<>(Map.ofEntries(
                        Map.entry("sizeof s_t", "16"),
                        Map.entry("alignof s_t", "8"),
                        Map.entry("offset s_t.a", "0"),
                        Map.entry("size s_t.a", "8"),
                        Map.entry("offset s_t.b", "8"),
                        Map.entry("size s_t.b", "4"),
                        Map.entry("sizeof e_t", "4"),
                        Map.entry("enumerator one", "1"),
                        Map.entry("enumerator two", "2"),
                        Map.entry("sizeof ncclConfig_t", "32"),
                        Map.entry("alignof ncclConfig_t", "8"),
                        Map.entry("offset ncclConfig_t.size", "0"),
                        Map.entry("size ncclConfig_t.size", "8"),
                        Map.entry("offset ncclConfig_t.magic", "8"),
                        Map.entry("size ncclConfig_t.magic", "4"),
                        Map.entry("offset ncclConfig_t.version", "12"),
                        Map.entry("size ncclConfig_t.version", "4"),
                        Map.entry("offset ncclConfig_t.name", "16"),
                        Map.entry("size ncclConfig_t.name", "8"),
                        Map.entry("offset ncclConfig_t.f", "24"),
                        Map.entry("size ncclConfig_t.f", "4"),
                        Map.entry("initial ncclConfig_t.magic", "7"),
                        Map.entry("initial ncclConfig_t.name", "NULL"),
                        Map.entry("initial ncclConfig_t.f", "0.5"),
                        Map.entry("initial size of ncclConfig_t", "1"),
                        Map.entry("constant SUM", "3"))),
                new TreeMap<>(layout));
    }

    @Test
    void reportsMissingCompilerAndCompileErrors(@TempDir Path folder) throws Exception {
        Path file = Files.writeString(folder.resolve("small.h"), "int f(int a);\n");
        Header header = Header.parse(file);
        String message = assertThrows(Layout.NoCompilerException.class, () -> new Layout("/nowhere/g++", OurHeader.SHIM)
                        .of(file, header, header))
                .getMessage();
        assertTrue(
                message.startsWith("no C++ compiler: ") && message.endsWith("; set NCCL4J_CXX to the name of one"),
                message);
        Files.writeString(file, "this is no C\n");
        String error = assertThrows(
                        IllegalStateException.class, () -> new Layout("g++", OurHeader.SHIM).of(file, header, header))
                .getMessage();
        assertTrue(error.contains("small.h:1"), error);
    }
}
