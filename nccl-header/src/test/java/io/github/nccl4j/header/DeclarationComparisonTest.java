package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Comparison of declarations, without a compiler. */
class DeclarationComparisonTest {
    private static final Release OURS = Release.of("2.30.7").orElseThrow();

    private static List<String> differences(String ours, String theirs, String theirRelease) {
        Differences differences = new Differences(OURS, Release.of(theirRelease).orElseThrow());
        new DeclarationComparison(Header.parse(ours), Header.parse(theirs), differences).run();
        return differences.list().stream().map(Difference::toString).toList();
    }

    private static String difference(String ours, String theirs) {
        return String.join("; ", differences(ours, theirs, "2.30.7"));
    }

    @Test
    void countsCommonDeclarations() {
        String text = """
                #define NCCL_A 1
                #define NCCL_VERSION(x) (x)
                #define other(x) (x)
                #define NCCL_H_
                typedef struct x* x_t;
                typedef enum { a, b } e_t;
                typedef struct { int m; int n; } s_t;
                int f(int a);
                """;
        Header header = Header.parse(text);
        Differences differences = new Differences(OURS, OURS);
        // f, NCCL_A and NCCL_VERSION, x_t, e_t with 2 enumerators, s_t with 2 fields.
        assertEquals(10, new DeclarationComparison(header, header, differences).run());
        assertEquals(List.of(), differences.list());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "int f(int a);|int f(int b);|''",
                "int f(int a);|int f(long a);|different: function f: ours int (int), theirs int (long)",
                "#define A 1|#define A 2|different: constant A: ours 1, theirs 2",
                "#define A 1|#define A (1)|''",
                "#define A 4|#define A 2 * 2|''",
                "#define A B|#define A C|different: constant A: ours B, theirs C",
                "#define A b c|#define A bc|''",
                "#define other(x) 1|#define other(x) 2|''",
                "#define other(x) 1|''|''",
                "#define NCCL_F(x) 1|#define NCCL_F(x) 2|''",
                "#define NCCL_F(x) 1|''|different: constant NCCL_F is only in ours, which names no newer release",
                "typedef struct x* x_t;|typedef struct y* x_t;|different: type x_t: ours struct x*, theirs struct y*",
                "typedef struct ncclWindow_vidmem* ncclWindow_t;|typedef struct ncclWindow* ncclWindow_t;|''",
                "typedef enum { a = q(1) } e;|typedef enum { a = q( 1 ) } e;|''",
                "typedef enum { a = q(1) } e;|typedef enum { a = q(2) } e;|"
                        + "different: enumerator a: ours q ( 1 ), theirs q ( 2 )",
                "typedef enum { a = q(1) } e;|typedef enum { a = 2 } e;|"
                        + "different: enumerator a: ours q ( 1 ), theirs 2",
                "typedef enum { a, ncclNumOps = 2 } e;|typedef enum { a, ncclNumOps = 1 } e;|"
                        + "different: enumerator ncclNumOps is 2 in ours, which has 1 values",
                "typedef struct { int a; int b; } s;|typedef struct { int b; int a; } s;|"
                        + "different: order of the fields of s: ours [s.a, s.b], theirs [s.b, s.a]",
                "/** @since VCCL */ int f(int a);|''|''",
                "/** @since NCCL 2.30.8 */ int f(int a);|''|''",
                "/** @since NCCL 2.30.7 */ int f(int a);|''|different: function f is only in ours, which says NCCL 2.30.7",
                "int f(int a);|''|different: function f is only in ours, which names no newer release",
                "/** @since NCCL 2.30.8 */ int f(int a);|int f(int a);|"
                        + "different: function f is in theirs, but ours says that 2.30.8 added it",
                "''|int f(int a);|different: function f is not in ours"
            })
    void reportsDifferences(String ours, String theirs, String expected) {
        assertEquals(expected, difference(ours + "\n", theirs + "\n"));
    }

    @Test
    void additionsOfANewerReleaseAreNotFaults() {
        assertEquals(
                List.of("newer than nccl4j: function f is not in ours"),
                differences("\n", "int f(int a);\n", "2.31.0"));
        assertEquals(
                List.of(
                        "newer than nccl4j: enumerator b is not in ours",
                        "newer than nccl4j: enumerator ncclNumOps is 2, expected 1 from the comments in ours"),
                differences("typedef enum { a, ncclNumOps } e;\n", "typedef enum { a, b, ncclNumOps } e;\n", "2.31.0"));
    }

    /** VCCL's earlier signature, with 10 arguments. */
    private static final String TEN =
            "ncclResult_t ncclAlltoAllv(const void* a, const size_t* b, const size_t* c, void* d,"
                    + " const size_t* e, const size_t* f, %s g, ncclDataType_t h, ncclComm_t i, cudaStream_t j);\n";

    @Test
    void acceptsOtherSignaturesOfAlltoAllv() {
        String eleven = "ncclResult_t ncclAlltoAllv(int a);\n";
        for (String relay : List.of("void*", "const void*")) {
            assertEquals("", difference(eleven, TEN.replace("%s", relay)));
            assertEquals(
                    "",
                    difference(
                            eleven.replace(" nccl", " pnccl"),
                            TEN.replace("%s", relay).replace(" ncclAlltoAllv", " pncclAlltoAllv")));
        }
        assertEquals(
                "",
                difference(
                        eleven,
                        "ncclResult_t ncclAlltoAllv(const void* a, const size_t b[], const size_t c[], void* d,"
                                + " const size_t e[], const size_t f[], ncclDataType_t g, ncclComm_t h,"
                                + " cudaStream_t i);\n"));
        assertEquals(
                "different: function ncclAlltoAllv: ours ncclResult_t (int), theirs ncclResult_t (long)",
                difference(eleven, "ncclResult_t ncclAlltoAllv(long a);\n"));
    }

    @Test
    void acceptsParamHandleOfNccl2304() {
        String ours = "typedef struct ncclParamHandle* ncclParamHandle_t;\nint f(ncclParamHandle_t h);\n"
                + "int g(ncclParamHandle_t* h);\n";
        String theirs = "typedef struct ncclParamHandle ncclParamHandle_t;\nint f(ncclParamHandle_t* h);\n"
                + "int g(ncclParamHandle_t** h);\n";
        assertEquals("", difference(ours, theirs));
        assertEquals(
                "different: function f: ours int (ncclParamHandle_t), theirs int (int)",
                difference(ours, theirs.replace("f(ncclParamHandle_t*", "f(int")));
        // If the handles are equal, the functions must be equal, too.
        String usual = "typedef struct ncclParamHandle* ncclParamHandle_t;\n";
        assertEquals(
                "different: function f: ours int (ncclParamHandle_t), theirs int (ncclParamHandle_t*)",
                difference(usual + "int f(ncclParamHandle_t h);\n", usual + "int f(ncclParamHandle_t* h);\n"));
    }
}
