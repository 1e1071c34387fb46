package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Sorting of the C++ that JavaCPP generates. */
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
            struct JavaCPP_hidden JavaCPP_a_Alloc {
                JavaCPP_a_Alloc() : ptr(NULL), obj(NULL) { }
                jobject obj; static jmethodID mid;
            };
            jmethodID JavaCPP_a_Alloc::mid = NULL;
            struct JavaCPP_hidden JavaCPP_a_Free {
                JavaCPP_a_Free() : ptr(NULL), obj(NULL) { }
                jobject obj; static jmethodID mid;
            };
            jmethodID JavaCPP_a_Free::mid = NULL;

            static JavaCPP_a_Alloc JavaCPP_a_Alloc_instances[2];
            static JavaCPP_a_Free JavaCPP_a_Free_instances[2];

            static void JavaCPP_a_Alloc_deallocate(void *p) {
                for (int i = 0; i < 2; i++) { JavaCPP_a_Alloc_instances[i].obj = NULL; }
                delete (JavaCPP_a_Alloc*)p; }
            static void JavaCPP_a_Config_deallocate(void *p) { delete (Config*)p; }
            static void JavaCPP_a_Free_deallocate(void *p) {
                for (int i = 0; i < 2; i++) { JavaCPP_a_Free_instances[i].obj = NULL; }
                delete (JavaCPP_a_Free*)p; }
            static void JavaCPP_a_Config_deallocateArray(void* p) { delete[] (Config*)p; }
            static void JavaCPP_a_Group_deallocateArray(void* p) { delete[] (Group*)p; }

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

            JNIEXPORT int JavaCPP_a_Alloc_allocate_callback(void* arg0) {
                return JavaCPP_a_Alloc_instances[0](arg0);
            }
            JNIEXPORT int JavaCPP_a_Alloc_allocate_callback1(void* arg0) {
                return JavaCPP_a_Alloc_instances[1](arg0);
            }
            static int (*JavaCPP_a_Alloc_allocate_callbacks[2])(void* arg0) = {
                    JavaCPP_a_Alloc_allocate_callback,
                    JavaCPP_a_Alloc_allocate_callback1 };
            int JavaCPP_a_Alloc::operator()(void* arg0) {
            {
                obj = Alloc;
            }
            end:
                return rarg;
            }
            JNIEXPORT int JavaCPP_a_Free_allocate_callback(void* arg0) {
                return JavaCPP_a_Free_instances[0](arg0);
            }
            JNIEXPORT int JavaCPP_a_Free_allocate_callback1(void* arg0) {
                return JavaCPP_a_Free_instances[1](arg0);
            }
            static int (*JavaCPP_a_Free_allocate_callbacks[2])(void* arg0) = {
                    JavaCPP_a_Free_allocate_callback,
                    JavaCPP_a_Free_allocate_callback1 };
            int JavaCPP_a_Free::operator()(void* arg0) {
            {
                obj = Free;
            }
            end:
                return rarg;
            }
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

    private static final String GENERATED = """
            static const char* JavaCPP_classNames[3] = {
                    "java/lang/String",
                    "a/Config",
                    "java/lang/Error$1" };
            static jclass JavaCPP_classes[3] = { NULL };
            static jstring text(JNIEnv* env) {
                return env->NewObject(JavaCPP_getClass(env, 0), JavaCPP_stringMID, 1);
            }
            struct JavaCPP_hidden JavaCPP_a_Free {
                JavaCPP_a_Free() : ptr(NULL), obj(NULL) { }
                jobject obj; static jmethodID mid;
            };
            jmethodID JavaCPP_a_Free::mid = NULL;
            struct JavaCPP_hidden JavaCPP_a_Alloc {
                JavaCPP_a_Alloc() : ptr(NULL), obj(NULL) { }
                jobject obj; static jmethodID mid;
            };
            jmethodID JavaCPP_a_Alloc::mid = NULL;

            static JavaCPP_a_Free JavaCPP_a_Free_instances[2];
            static JavaCPP_a_Alloc JavaCPP_a_Alloc_instances[2];

            static void JavaCPP_a_Free_deallocate(void *p) {
                for (int i = 0; i < 2; i++) { JavaCPP_a_Free_instances[i].obj = NULL; }
                delete (JavaCPP_a_Free*)p; }
            static void JavaCPP_a_Alloc_deallocate(void *p) {
                for (int i = 0; i < 2; i++) { JavaCPP_a_Alloc_instances[i].obj = NULL; }
                delete (JavaCPP_a_Alloc*)p; }
            static void JavaCPP_a_Config_deallocate(void *p) { delete (Config*)p; }
            static void JavaCPP_a_Group_deallocateArray(void* p) { delete[] (Group*)p; }
            static void JavaCPP_a_Config_deallocateArray(void* p) { delete[] (Config*)p; }

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

            JNIEXPORT int JavaCPP_a_Free_allocate_callback(void* arg0) {
                return JavaCPP_a_Free_instances[0](arg0);
            }
            JNIEXPORT int JavaCPP_a_Free_allocate_callback1(void* arg0) {
                return JavaCPP_a_Free_instances[1](arg0);
            }
            static int (*JavaCPP_a_Free_allocate_callbacks[2])(void* arg0) = {
                    JavaCPP_a_Free_allocate_callback,
                    JavaCPP_a_Free_allocate_callback1 };
            int JavaCPP_a_Free::operator()(void* arg0) {
            {
                obj = Free;
            }
            end:
                return rarg;
            }
            JNIEXPORT void JNICALL Java_a_Config_allocate(JNIEnv* env, jobject obj) {
                if (!obj) {
                    exc = JavaCPP_handleException(env, 2);
                }
            }
            JNIEXPORT int JavaCPP_a_Alloc_allocate_callback(void* arg0) {
                return JavaCPP_a_Alloc_instances[0](arg0);
            }
            JNIEXPORT int JavaCPP_a_Alloc_allocate_callback1(void* arg0) {
                return JavaCPP_a_Alloc_instances[1](arg0);
            }
            static int (*JavaCPP_a_Alloc_allocate_callbacks[2])(void* arg0) = {
                    JavaCPP_a_Alloc_allocate_callback,
                    JavaCPP_a_Alloc_allocate_callback1 };
            int JavaCPP_a_Alloc::operator()(void* arg0) {
            {
                obj = Alloc;
            }
            end:
                return rarg;
            }
            }

            """;

    @Test
    void sortsClassesMembersAndFunctions() {
        assertEquals(SORTED, GeneratedJni.sort(GENERATED));
        assertEquals(SORTED, GeneratedJni.sort(SORTED), "idempotent");
    }

    @Test
    void rejectsUnexpectedForms() {
        assertFault("class index 7 must be below 3", GENERATED.replace("(env, 2)", "(env, 7)"));
        assertFault("a table must have one element per class: 2, 3", GENERATED.replace("= { 1, 3, 1 }", "= { 1, 3 }"));
        assertFault("no JNI function", GENERATED.replace("Java_", "C_"));
        assertFault("no table like static const char* JavaCPP_classNames[...] = {", "int main() {}\n");
    }

    @Test
    void rejectsUnknownUseOfAClassIndex() {
        String problem = "unknown use of a class index: ";
        assertFault(problem + "JavaCPP_loadGlobalRef(env, 1", GENERATED.replace("createPointer", "loadGlobalRef"));
        assertFault(
                problem + "JavaCPP_classes[1]", GENERATED.replace("return JNI_VERSION", "JavaCPP_classes[1]; return"));
    }

    @Test
    void rejectsOtherChangesThanOrder() {
        GeneratedJni.requireSame(GENERATED, SORTED);
        assertChange("(env, 2), JavaCPP_stringMID", "(env, 1), JavaCPP_stringMID");
        assertChange("= { 3, 1, 1 }", "= { 1, 3, 1 }");
        assertChange("offsetof(Config, version) }", "offsetof(Config, size) }");
        assertChange("    if (!obj) {\n", "");
        assertChange("a/Config", "a/Confih");
        String added = SORTED + "int more;\n";
        assertEquals(
                "sorting changed [] to [int more;]",
                assertThrows(IllegalArgumentException.class, () -> GeneratedJni.requireSame(SORTED, added))
                        .getMessage());
        assertEquals(
                "sorting changed [int more;] to []",
                assertThrows(IllegalArgumentException.class, () -> GeneratedJni.requireSame(added, SORTED))
                        .getMessage());
    }

    private static void assertChange(String old, String replacement) {
        String changed = SORTED.replace(old, replacement);
        assertThrows(IllegalArgumentException.class, () -> GeneratedJni.requireSame(GENERATED, changed), replacement);
    }

    @Test
    void reportsMissingNativeMethods() {
        Map<String, Long> natives = new TreeMap<>(
                Map.of(GeneratedJni.cName("a.Config", "allocate"), 1L, GeneratedJni.cName("a.Config", "version"), 1L));
        GeneratedJni.requireNatives(SORTED, natives);
        natives.put(GeneratedJni.cName("a.Config", "version"), 2L);
        natives.put(GeneratedJni.cName("a.Sim_t", "size"), 1L);
        assertEquals(
                "JavaCPP omitted native methods, see its warnings:"
                        + " [Java_a_Config_version (1 of 2), Java_a_Sim_1t_size (0 of 1)]",
                assertThrows(IllegalArgumentException.class, () -> GeneratedJni.requireNatives(SORTED, natives))
                        .getMessage());
        String overloads = SORTED.replace("Java_a_Config_allocate(", "Java_a_Config_version__J(");
        GeneratedJni.requireNatives(overloads, Map.of("Java_a_Config_version", 2L));
    }

    /** A class with native methods, which no library has. */
    private static final class Natives {
        private static native void allocate();

        private static native void version();
    }

    @Test
    void nativeMethodsOfAllClassesMustBeInTheFile(@TempDir Path folder) throws Exception {
        assertEquals(2, Natives.class.getDeclaredMethods().length);
        Path classes = Path.of(GeneratedJniTest.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        String prefix = "Java_io_github_nccl4j_header_GeneratedJniTest_00024Natives_";
        String generated = GENERATED.replace("Java_a_Config_", prefix);
        Path file = folder.resolve("jnisome.cpp");
        String[] arguments = {
            "--source", file.toString(), "--classes", classes.toString(), "--package", "io.github.nccl4j.header"
        };
        Files.writeString(file, generated);
        GeneratedJni.main(arguments);
        assertEquals(SORTED.replace("Java_a_Config_", prefix), Files.readString(file));

        Files.writeString(file, generated.replace(prefix + "version", prefix + "other"));
        String message = assertThrows(IllegalStateException.class, () -> GeneratedJni.main(arguments))
                .getMessage();
        assertEquals(
                file + ": JavaCPP omitted native methods, see its warnings: [" + prefix + "version (0 of 1)]", message);

        // JavaCPP's own file has other methods.
        Path own = folder.resolve("jnijavacpp.cpp");
        Files.writeString(own, GENERATED);
        arguments[1] = own.toString();
        GeneratedJni.main(arguments);
        assertEquals(SORTED, Files.readString(own));
    }

    private static void assertFault(String message, String source) {
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, () -> GeneratedJni.sort(source))
                        .getMessage());
    }
}
