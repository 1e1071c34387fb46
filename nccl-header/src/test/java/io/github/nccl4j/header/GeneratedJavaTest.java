package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

/** Completion of the class that JavaCPP generates. */
class GeneratedJavaTest {
    private static final String SOURCE = """
            public class nccl extends io.github.nccl4j.presets.nccl {
            /** public static native words of a comment */
            public static native @MemberGetter int NCCL_MAJOR();
            public static native @Cast("ncclResult_t") int ncclMemFree(@Cast("void(;") long ptr);
            public static native @Cast("const char*") BytePointer pncclGetErrorString(
                @Cast("ncclResult_t") int result);
            public static native void nccl4jReset(int ncclX);
            public static native ncclComm comm(ncclComm c);
            }
            """;

    @Test
    void onlyNcclFunctionsGetAThrowsClause() {
        String expected =
                SOURCE.replace("long ptr);", "long ptr) throws a.B;").replace("result);", "result) throws a.B;");
        assertEquals(expected, GeneratedJava.complete(SOURCE, "a.B"));
        assertEquals(expected, GeneratedJava.complete(expected, "a.B"), "idempotent");
    }

    @Test
    void pointerFormCallsTheRawForm() {
        String source = """
                public static native @Cast("ncclResult_t") int ncclMemFree(Pointer ptr, @Cast("size_t") long n);
                """;
        assertEquals("""
                public static int ncclMemFree(Pointer ptr, long n) throws a.B {
                    int result = ncclMemFree(addressOf(ptr), n);
                    java.lang.ref.Reference.reachabilityFence(ptr);
                    return result;
                }
                """, GeneratedJava.complete(source, "a.B"));
    }

    @Test
    void classGetsOneComment() {
        String source = "import a.*;\n\npublic class nccl extends A {}\n";
        String commented = GeneratedJava.withComment(source, " The functions\n  of C. ");
        assertEquals("import a.*;\n\n/** The functions of C. */\npublic class nccl extends A {}\n", commented);
        assertEquals(commented, GeneratedJava.withComment(commented, "Other."), "idempotent");
    }

    @Test
    void rejectsClassWithoutNcclFunctions() {
        var failure = assertThrows(
                IllegalArgumentException.class,
                () -> GeneratedJava.complete("public static native void nccl4jReset();", "a.B"));
        assertEquals("no NCCL function among the native methods", failure.getMessage());
    }
}
