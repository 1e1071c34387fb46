package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

/** What is done to the C++ that JavaCPP generates. */
class GeneratedJniTest {
    private static final String SORTED = """
            static const char* JavaCPP_classNames[3] = {
                    "a/Config",
                    "java/lang/Error",
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
                    "java/lang/Error" };
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

    private static void assertFault(String message, String source) {
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, () -> GeneratedJni.sort(source))
                        .getMessage());
    }
}
