package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** What is done to the C++ that JavaCPP generates. */
class GeneratedJniTest {
    private static final String SORTED = """
            static const char* JavaCPP_classNames[3] = {
                    "a/Config",
                    "java/lang/Error$1",
                    "java/lang/String" };
            static jclass JavaCPP_classes[3] = { NULL };
            static jstring text(JNIEnv* env) {
                return env->NewObject(JavaCPP_getClass(env, 2), JavaCPP_stringMID, 1);
            }
            static const char* JavaCPP_members[3][4] = {
                    { "sizeof", "blocking", "version" },
                    { NULL },
                    { NULL } };
            static int JavaCPP_offsets[3][4] = {
                    { sizeof(Config), offsetof(Config, blocking), offsetof(Config, version) },
                    { -1 },
                    { -1 } };
            static int JavaCPP_memberOffsetSizes[3] = { 3, 1, 1 };
            extern "C" {
            JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void* reserved) {
                return JNI_VERSION_1_6;
            }

            static void between() {}

            JNIEXPORT void JNICALL Java_a_Config_allocate(JNIEnv* env, jobject obj) {
                if (!obj) {
                    exc = JavaCPP_handleException(env, 1);
                }
            }
            JNIEXPORT void JNICALL Java_a_Config_version(JNIEnv* env, jobject obj) {
                rarg = JavaCPP_createPointer(env, 0);
            }
            }

            """;

    private static final String AS_GENERATED = """
            static const char* JavaCPP_classNames[3] = {
                    "java/lang/String",
                    "a/Config",
                    "java/lang/Error$1" };
            static jclass JavaCPP_classes[3] = { NULL };
            static jstring text(JNIEnv* env) {
                return env->NewObject(JavaCPP_getClass(env, 0), JavaCPP_stringMID, 1);
            }
            static const char* JavaCPP_members[3][4] = {
                    { NULL },
                    { "sizeof", "version", "blocking" },
                    { NULL } };
            static int JavaCPP_offsets[3][4] = {
                    { -1 },
                    { sizeof(Config), offsetof(Config, version), offsetof(Config, blocking) },
                    { -1 } };
            static int JavaCPP_memberOffsetSizes[3] = { 1, 3, 1 };
            extern "C" {
            JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void* reserved) {
                return JNI_VERSION_1_6;
            }

            JNIEXPORT void JNICALL Java_a_Config_version(JNIEnv* env, jobject obj) {
                rarg = JavaCPP_createPointer(env, 1);
            }
            static void between() {}

            JNIEXPORT void JNICALL Java_a_Config_allocate(JNIEnv* env, jobject obj) {
                if (!obj) {
                    exc = JavaCPP_handleException(env, 2);
                }
            }
            }

            """;

    @Test
    void theOrderOfMethodsMakesNoDifference() {
        assertEquals(SORTED, GeneratedJni.sort(AS_GENERATED));
        assertEquals(SORTED, GeneratedJni.sort(SORTED), "twice is as good as once");
    }

    @Test
    void whatIsNotAsExpectedIsAFault() {
        assertFault("class 7 of 3", AS_GENERATED.replace("(env, 2)", "(env, 7)"));
        assertFault("a table has 2 elements, that of classes 3", AS_GENERATED.replace("= { 1, 3, 1 }", "= { 1, 3 }"));
        assertFault("no function that Java calls", AS_GENERATED.replace("Java_", "C_"));
        assertFault("no table like static const char* JavaCPP_classNames[...] = {", "int main() {}\n");
    }

    @Test
    void aNumberThatMayBeOfNoClassIsAFault() {
        String problem = "is not known to have the number of a class: ";
        assertFault(problem + "JavaCPP_loadGlobalRef(env, 1", AS_GENERATED.replace("createPointer", "loadGlobalRef"));
        assertFault(
                problem + "JavaCPP_classes[1]",
                AS_GENERATED.replace("return JNI_VERSION", "JavaCPP_classes[1]; return"));
    }

    @Test
    void whateverElseWouldChangeIsAFault() {
        GeneratedJni.requireSame(AS_GENERATED, SORTED);
        assertChange("(env, 2), JavaCPP_stringMID", "(env, 1), JavaCPP_stringMID");
        assertChange("= { 3, 1, 1 }", "= { 1, 3, 1 }");
        assertChange("offsetof(Config, version) }", "offsetof(Config, size) }");
        assertChange("    if (!obj) {\n", "");
        assertChange("a/Config", "a/Confih");
    }

    private static void assertChange(String old, String replacement) {
        String changed = SORTED.replace(old, replacement);
        assertThrows(
                IllegalArgumentException.class, () -> GeneratedJni.requireSame(AS_GENERATED, changed), replacement);
    }

    @Test
    void aNativeMethodThatWasLeftOutIsAFault() {
        Map<String, Long> natives = new TreeMap<>(Map.of(
                GeneratedJni.nameInC("a.Config", "allocate"), 1L, GeneratedJni.nameInC("a.Config", "version"), 1L));
        GeneratedJni.requireNatives(SORTED, natives);
        natives.put(GeneratedJni.nameInC("a.Config", "version"), 2L);
        natives.put(GeneratedJni.nameInC("a.Sim_t", "size"), 1L);
        assertEquals(
                "JavaCPP left out native methods, its warnings say why:"
                        + " [Java_a_Config_version (1 of 2), Java_a_Sim_1t_size (0 of 1)]",
                assertThrows(IllegalArgumentException.class, () -> GeneratedJni.requireNatives(SORTED, natives))
                        .getMessage());
        String overloads = SORTED.replace("Java_a_Config_allocate(", "Java_a_Config_version__J(");
        GeneratedJni.requireNatives(overloads, Map.of("Java_a_Config_version", 2L));
    }

    private static void assertFault(String message, String source) {
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, () -> GeneratedJni.sort(source))
                        .getMessage());
    }
}
