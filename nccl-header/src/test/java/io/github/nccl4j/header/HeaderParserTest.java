package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Parsing of declarations in all forms, and of preprocessor directives. */
class HeaderParserTest {
    private static String functions(String text) {
        return Header.parse(text).functions().values().stream()
                .map(Function::toString)
                .collect(Collectors.joining("; "));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "int f();|int f()",
                "int f(void);|int f()",
                "int f(int);|int f(int)",
                "int f(int a, const char *b);|int f(int a, const char* b)",
                "int f(unsigned long);|int f(unsigned long)",
                "int f(int a[]);|int f(int* a)",
                "int f(int [3]);|int f(int*)",
                "int f(T);|int f(T)",
                "int f(struct x* y);|int f(struct x* y)",
                "NCCL_API int f(int a);|int f(int a)",
                "extern int f(int a);|int f(int a)",
                "extern \"C\" int f(int a);|''",
                "extern \"C\" { int f(int a); }|int f(int a)",
                "/* doc */ extern /* C */ \"C\" { int f(int a); int g(); }|int f(int a); int g()",
                "static inline int f(int a) { return (a); } int g();|int f(int a); int g()",
                "int f(int a) __attribute__((deprecated(\"(old)\")));|int f(int a)",
                "[[nodiscard]] int f(int a);|int f(int a)",
                "int f([[maybe_unused]] int a);|int f(int a)",
                "int f(int a[2], int b);|int f(int* a, int b)",
                "int x;|''",
                ";;int f();|int f()",
                "struct s { int a; }; int f();|int f()",
                "enum { a }; int f();|int f()",
                "struct s; int f();|int f()"
            })
    void parsesPrototypes(String text, String expected) {
        assertEquals(expected, functions(text));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "f(int a);|not a prototype: f ( int a )",
                "int *(f)(int);|not a prototype: int * ( f )",
                "int f(int a;|bracket is not closed: int f ( int a ;"
            })
    void rejectsInvalidPrototypes(String text, String message) {
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, () -> Header.parse(text))
                        .getMessage());
    }

    @Test
    void prototypesIncludeOverloads() {
        assertEquals(
                List.of("int f(int a)", "int f(int a, int b)"),
                HeaderParser.prototypes("int f(int a); int f(int a, int b);").stream()
                        .map(Function::toString)
                        .toList());
    }

    @Test
    void typesHaveNamesAndTags() {
        Header header = Header.parse("""
                typedef struct tagged { int a; } s_t;
                typedef struct { int a; } untagged_t;
                struct plain { int a; };
                typedef enum tag { A } e_t;
                typedef enum { B } u_t;
                enum plainEnum { C };
                typedef struct later* later_t;
                typedef void* any_t;
                typedef unsigned long int size_type;
                typedef int (*call_t)(void** p, const char* text);
                """);
        assertEquals(
                List.of("tagged s_t", " untagged_t", "plain plain"),
                header.structs().values().stream()
                        .map(struct -> struct.tag() + " " + struct.name())
                        .toList());
        assertEquals(
                List.of("tag e_t", " u_t", "plainEnum plainEnum"),
                header.enums().values().stream()
                        .map(type -> type.tag() + " " + type.name())
                        .toList());
        assertEquals(
                List.of(
                        "later_t struct later*",
                        "any_t void*",
                        "size_type unsigned long",
                        "call_t int (*)(void**, const char*)"),
                header.aliases().values().stream()
                        .map(alias -> alias.name() + " " + alias.type())
                        .toList());
    }

    @Test
    void fieldsHaveTypesArraysAndReleases() {
        List<Field> fields = Header.parse("""
                typedef struct {
                  int a; /* 2.20.3: first */
                  const char *b; /* no release */
                  char c[2 * N]; /* 2.21.5 */ /* 2.22.3 */
                  int d;
                  /* 2.23.4: a line of its own says nothing of what is before */
                  unsigned long long e;
                  struct x* f;
                } s_t;
                """).structs().get("s_t").fields();
        assertEquals(
                List.of("int a", "const char* b", "char c[2 * N]", "int d", "unsigned long long e", "struct x* f"),
                fields.stream().map(Field::toString).toList());
        assertEquals(
                List.of("NCCL 2.20.3", "", "NCCL 2.22.3", "", "", ""),
                fields.stream().map(Field::since).toList());
    }

    @Test
    void oneDeclarationMayHaveSeveralFields() {
        List<Field> fields = Header.parse("""
                typedef struct {
                  int a, b, c; /* 2.30.3 */
                  struct { long x, y; } inner; /* 2.31.2 */
                } s_t;
                """).structs().get("s_t").fields();
        assertEquals(
                List.of(
                        "int a NCCL 2.30.3",
                        "int b NCCL 2.30.3",
                        "int c NCCL 2.30.3",
                        "long inner.x NCCL 2.31.2",
                        "long inner.y NCCL 2.31.2"),
                fields.stream().map(field -> field + " " + field.since()).toList());
    }

    @Test
    void enumeratorsContinueFromThePreviousValue() {
        List<Enumerator> enumerators = Header.parse("""
                typedef enum {
                  a, b = 5, /* 2.20.3: word */
                  c, d = unknown(1), /* no release */ e,
                  f __attribute__((deprecated)) = a + 2, g,
                  h /* 2.21.5 */
                } e_t;
                """).enums().get("e_t").enumerators();
        assertEquals(
                List.of("a 0", "b 5", "c 6", "d ?", "e ?", "f 2", "g 3", "h 4"),
                enumerators.stream()
                        .map(e -> e.name() + " "
                                + (e.value().isPresent() ? "" + e.value().getAsLong() : "?"))
                        .toList());
        assertEquals(
                List.of("", "5", "", "unknown ( 1 )", "", "a + 2", "", ""),
                enumerators.stream().map(Enumerator::text).toList());
        assertEquals(
                List.of("", "NCCL 2.20.3", "", "", "", "", "", "NCCL 2.21.5"),
                enumerators.stream().map(Enumerator::since).toList());
    }

    @Test
    void sinceTagAppliesToTheNextDeclarationOnly() {
        Header header = Header.parse("""
                /** @since NCCL 2.20.3 */
                int f(void);
                int g(void);
                /** @since VCCL
                 */
                typedef struct x* x_t;
                """);
        assertEquals("NCCL 2.20.3", header.functions().get("f").since());
        assertEquals("", header.functions().get("g").since());
        assertEquals("VCCL", header.aliases().get("x_t").since());
    }

    private static String defined(String text) {
        return String.join(" ", Header.parse(text).macros().keySet());
    }

    /** A chain of conditions has one active branch, and none inside an inactive branch. */
    @ParameterizedTest
    @CsvSource({
        "1,0,first",
        "1,1,first",
        "0,1,second",
        "0,0,third",
    })
    void exactlyOneBranchIsActive(int first, int second, String active) {
        String chain = "#if " + first + "\n#define first\n#elif " + second
                + "\n#define second\n#else\n#define third\n#endif\n";
        assertEquals(active, defined(chain));
        assertEquals("", defined("#if 0\n" + chain + "#endif\n"));
        assertEquals(active + " after", defined(chain + "#define after\n"));
        assertEquals("other", defined("#if 0\n" + chain + "#else\n#define other\n#endif\n"));
        assertEquals("other", defined("#if 1\n#define other\n#else\n" + chain + "#endif\n"));
        assertEquals("other", defined("#if 1\n#define other\n#elif 1\n" + chain + "#endif\n"));
        // Conditions after the active branch are not evaluated.
        assertEquals(
                active.equals("first") ? "first" : "?",
                active.equals("first") ? defined("#if 1\n#define first\n#elif not an expression\n#endif\n") : "?");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "#ifdef A",
                "#ifndef B",
                "#if defined A",
                "#if defined(A)",
                "#if !defined(B)",
                "#if !defined B",
                "#if A == 3",
                "#if C == 4",
                "#if !UNKNOWN",
                "#if defined(A) && A > 2",
                "#if CUDART_VERSION >= 11000",
                "#ifdef __linux__",
                "#if NCCL_OS_LINUX",
                "#if EMPTY_TWICE_REMOVED == 0"
            })
    void evaluatesConditions(String condition) {
        String text = "#define A 3\n#define C (A + 1)\n#define B\n#undef B\n" + condition + "\n#define yes\n#else\n"
                + "#define no\n#endif\n";
        assertEquals("A C yes", defined(text));
    }

    @Test
    void macrosHaveTheirTextAndRelease() {
        Header header = Header.parse("""
                #
                #define EMPTY
                #define ONE 1 /* 2.20.3 */
                #define SUM ( 1+ONE )   // nothing
                #define CALL(a,  b) a + b /* no */ /* 2.21.5: word */
                #define SPACED (a)
                #if 0
                #undef ONE
                #define LEFT_OUT
                #endif
                """);
        assertEquals(
                List.of(
                        "EMPTY  false ",
                        "ONE 1 false NCCL 2.20.3",
                        "SUM ( 1+ONE ) false ",
                        "CALL (a, b) a + b true NCCL 2.21.5",
                        "SPACED (a) false "),
                header.macros().values().stream()
                        .map(macro ->
                                macro.name() + " " + macro.text() + " " + macro.functionLike() + " " + macro.since())
                        .toList());
    }

    /** A recursive macro has no value; its evaluation must end. */
    @Test
    void recursiveMacroIsZero() {
        assertEquals("A yes", defined("#define A A\n#if !A\n#define yes\n#endif\n"));
    }
}
