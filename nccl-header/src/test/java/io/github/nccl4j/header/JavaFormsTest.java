package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The overloads for a header, and the verification that the generated class has them. */
class JavaFormsTest {
    private static final Header HEADER = Header.parse("""
            typedef struct ncclFuture_v1* ncclFuture_t;
            int ncclFutureWait(ncclFuture_t future, size_t n);
            int ncclFutureGet(ncclFuture_t future, void** result, int* count);
            """);

    private static final String JAVA = """
            public static native int ncclFutureWait(ncclFuture future, @Cast("size_t") long n);
            public static native int ncclFutureWait(@Cast("ncclFuture_t") long future, @Cast("size_t") long n);
            public static native int ncclFutureGet(ncclFuture future, PointerPointer result, int[] count);
            public static native int ncclFutureGet(long future, long result, long count);
            """;

    private static String problem(String java) {
        List<Function> functions = List.copyOf(HEADER.functions().values());
        return assertThrows(
                        IllegalArgumentException.class,
                        () -> GeneratedJava.requireFunctions(java, new JavaForms(HEADER), functions))
                .getMessage();
    }

    @Test
    void rulesContainHandlesAndDoublePointers() {
        String rules = new JavaForms(HEADER).rules();
        assertTrue(rules.contains("handle\tncclFuture_t\tncclFuture\nclass\tncclFuture_v1\tncclFuture\n"), rules);
        assertTrue(
                rules.contains("int ncclFutureGet(ncclFuture future, @Cast(\"void**\") PointerPointer result"), rules);
    }

    @Test
    void reportsMissingAndSurplusOverloads() {
        GeneratedJava.requireFunctions(
                JAVA, new JavaForms(HEADER), List.copyOf(HEADER.functions().values()));
        String start = "the class must have exactly the overloads of the header: missing ";
        assertEquals(
                start + "[ncclFutureWait(ncclFuture, long)], surplus []",
                problem(JAVA.substring(JAVA.indexOf('\n') + 1)));
        assertEquals(
                start + "[], surplus [ncclFutureDrop(int)]",
                problem(JAVA + "public static native int ncclFutureDrop(int a);\n"));
        assertEquals(
                start + "[ncclFutureWait(long, long)], surplus [ncclFutureWait(long, int)]",
                problem(JAVA.replace(
                        "\"ncclFuture_t\") long future, @Cast(\"size_t\") long",
                        "\"ncclFuture_t\") long future, int")));
    }

    @Test
    void rejectsUnknownType() {
        Header header = Header.parse("int ncclOdd(ncclOdd_t odd);");
        var failure = assertThrows(IllegalArgumentException.class, () -> new JavaForms(header)
                .of(header.functions().get("ncclOdd")));
        assertEquals("ncclOdd: no Java type is known for ncclOdd_t", failure.getMessage());
    }

    @Test
    void functionsWithUnknownTypesAreNotBound() {
        Header header = Header.parse("""
                typedef struct { int a; } ncclOdd_t;
                typedef struct ncclOpaque ncclOpaque_t;
                int ncclByValue(ncclOpaque_t odd);
                int ncclCallback(int a, void (*call)(void* data, int status), void* data);
                int ncclPlain(const ncclOdd_t* odd, int a);
                """);
        JavaForms forms = new JavaForms(header);
        assertEquals(
                Map.of(
                        "ncclByValue", "ncclByValue: no Java type is known for ncclOpaque_t",
                        "ncclCallback",
                                "ncclCallback: no Java type is known for void(* call)( void* data, int status)"),
                forms.unbound());
        assertTrue(forms.rules().contains("skip\tncclByValue\nskip\tncclCallback\n"), forms.rules());
        assertEquals(
                Set.of(List.of("ncclOdd_t", "int"), List.of("long", "int")),
                forms.of(header.functions().get("ncclPlain")));
    }

    @Test
    void allFunctionsOfOurHeadersAreBound() throws Exception {
        Header header = Header.parse(OurHeader.FILE);
        assertEquals(Map.of(), new JavaForms(header).unbound());
        Header device = Header.parse(OurHeader.DEVICE);
        assertEquals(Map.of(), new JavaForms(device, device.including(header)).unbound());
        // Without nccl.h the handles are unknown.
        assertTrue(new JavaForms(device).unbound().containsKey("ncclTeamWorld"));
    }

    @Test
    void structuresByValueHaveTwoForms() {
        Header included = Header.parse("typedef struct ncclComm* ncclComm_t;");
        Header header = Header.parse("""
                typedef uint32_t ncclId_t;
                typedef struct ncclTeam { int a; } ncclTeam_t;
                ncclTeam_t ncclWorld(ncclComm_t comm);
                int ncclRank(ncclTeam_t team, int rank, ncclId_t* id);
                """);
        JavaForms forms = new JavaForms(header, header.including(included));
        assertEquals("""
                struct	ncclTeam_t	ncclTeam_t
                struct	ncclTeam	ncclTeam_t
                number	ncclId_t	uint32_t
                function	ncclWorld	public static native @ByVal ncclTeam_t ncclWorld(ncclComm comm);
                function	ncclWorld	public static native @ByVal ncclTeam_t ncclWorld(@Cast("ncclComm_t") long comm);
                function	ncclRank	public static native int ncclRank(@ByVal ncclTeam_t team, int rank, @Cast("ncclId_t*") int[] id);
                function	ncclRank	public static native int ncclRank(@Cast("nccl4j::ValueAt<ncclTeam_t>") long team, int rank, @Cast("ncclId_t*") long id);
                """, forms.rules());
    }

    @Test
    void overloadsCombineAlternativesWithEqualIndex() {
        Header header = Header.parse("int ncclTwo(const void* buffer, const char* name);");
        assertEquals(
                Set.of(
                        List.of("Pointer", "BytePointer"),
                        List.of("long", "long"),
                        List.of("Pointer", "String"),
                        List.of("long", "String")),
                new JavaForms(header).of(header.functions().get("ncclTwo")));
    }

    /** One rule per declaration that JavaCPP would otherwise misinterpret. */
    @Test
    void rulesFollowFromTheDeclarations() {
        Header header = Header.parse("""
                typedef struct CUstream_st* cudaStream_t;
                typedef struct ncclComm* ncclComm_t;
                typedef struct ncclWindow_v1* ncclWindow_t;
                typedef struct ncclOpaque ncclOpaque_t;
                typedef void* ncclAny_t;
                typedef unsigned long ncclSize_t;
                typedef struct { char internal[128]; } ncclUniqueId;
                typedef struct ncclConfig_v1 { int a; } ncclConfig_t;
                typedef struct same { int a; } same;
                typedef enum { ncclA } ncclEnum_t;
                enum { ncclB };
                int ncclPlain(ncclComm_t comm, ncclOpaque_t* opaque);
                const char* ncclText(ncclEnum_t e, ncclUniqueId id, const char*);
                void ncclTwo(void** a, ncclConfig_t* config, cudaStream_t stream, int* n, float x);
                """);
        assertEquals("""
                handle	ncclComm_t	ncclComm
                handle	ncclWindow_t	ncclWindow
                class	ncclWindow_v1	ncclWindow
                opaque	ncclOpaque_t	ncclOpaque
                handle	ncclAny_t	Pointer
                struct	ncclConfig_t	ncclConfig_t
                struct	same	same
                struct	ncclConfig_v1	ncclConfig_t
                enum	ncclEnum_t
                function	ncclText	public static native String ncclText(@Cast("ncclEnum_t") int e, @ByVal ncclUniqueId id, String arg2);
                function	ncclText	public static native String ncclText(@Cast("ncclEnum_t") int e, @Cast("nccl4j::UniqueIdAt") long id, @Cast("const char*") long arg2);
                function	ncclTwo	public static native void ncclTwo(@Cast("void**") PointerPointer a, @Cast("ncclConfig_t*") ncclConfig_t config, CUstream_st stream, @Cast("int*") int[] n, float x);
                function	ncclTwo	public static native void ncclTwo(@Cast("void**") long a, @Cast("ncclConfig_t*") long config, @Cast("cudaStream_t") long stream, @Cast("int*") long n, float x);
                """, new JavaForms(header).rules());
    }

    @Test
    void everyKindOfTypeHasItsAlternatives() {
        Header header = Header.parse("""
                typedef struct ncclComm* ncclComm_t;
                typedef struct ncclOpaque ncclOpaque_t;
                typedef void* ncclAny_t;
                typedef struct { char internal[128]; } ncclUniqueId;
                typedef struct { int a; } ncclConfig_t;
                typedef enum { ncclA } ncclEnum_t;
                int f(ncclComm_t a, ncclComm_t* b, ncclOpaque_t* c, void* d, size_t e, size_t* f, ncclEnum_t* g,
                    ncclConfig_t* h, ncclUniqueId i, ncclAny_t j, ncclUniqueId* k);
                int g(ncclOther_t a);
                int h(ncclOpaque_t a);
                int i(ncclOpaque_t** a);
                """);
        JavaForms forms = new JavaForms(header);
        // Buffers and arrays of numbers appear in both the Pointer form and the raw-address form.
        List<String> expected = new ArrayList<>();
        for (String number : List.of("IntPointer", "IntBuffer", "int[]")) {
            expected.add("[ncclComm, PointerPointer, ncclOpaque, Pointer, long, SizeTPointer, " + number
                    + ", ncclConfig_t, ncclUniqueId, Pointer, ncclUniqueId]");
            expected.add("[long, long, long, long, long, long, " + (number.endsWith("Pointer") ? "long" : number)
                    + ", long, long, long, long]");
        }
        assertEquals(expected.toString(), forms.of(header.functions().get("f")).toString());
        for (String name : List.of("g", "h")) {
            String type = header.functions().get(name).parameters().get(0).type();
            assertEquals(
                    name + ": no Java type is known for " + type,
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> forms.of(header.functions().get(name)))
                            .getMessage());
        }
        assertEquals(
                "[[PointerPointer], [long]]",
                forms.of(header.functions().get("i")).toString());
    }
}
