package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The check of the extensions' headers finds exactly the differences that the tests plant in copies of ours. */
class ExtensionCheckTest {
    private static final Path HEADERS = Path.of("../nccl-extensions/src/main/native/include");

    @TempDir
    private Path folder;

    private Path ours;

    @BeforeEach
    void copyOurHeaders() throws IOException {
        ours = Files.createDirectory(folder.resolve("ours"));
        Files.copy(OurHeader.FILE, ours.resolve("nccl.h"));
        for (Extension extension : Extension.values()) {
            Files.copy(HEADERS.resolve(extension.file()), ours.resolve(extension.file()));
        }
    }

    private List<HeaderCheck.Report> check(Path path, String compiler) throws IOException {
        return new HeaderCheck(ours.resolve("nccl.h"), OurHeader.SHIM, compiler).checkAll(path);
    }

    private HeaderCheck.Report check(Extension extension, String theirs) throws IOException {
        List<HeaderCheck.Report> reports = check(Files.writeString(folder.resolve(extension.file()), theirs), "g++");
        assertEquals(1, reports.size(), reports.toString());
        return reports.get(0);
    }

    private static String text(Extension extension) throws IOException {
        return Files.readString(HEADERS.resolve(extension.file()));
    }

    private static String with(Extension extension, String old, String replacement) throws IOException {
        String text = text(extension);
        assertTrue(text.contains(old), old);
        return text.replace(old, replacement);
    }

    @ParameterizedTest
    @EnumSource
    void ourHeaderEqualsItself(Extension extension) throws IOException {
        HeaderCheck.Report report = check(extension, text(extension));
        assertTrue(report.passed(), report.lines().toString());
        assertEquals(1, report.lines().size(), report.lines().toString());
        assertTrue(
                report.lines().get(0).startsWith(extension.file() + " 0.2.0: 0 differences, "),
                report.lines().toString());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "M2N|ncclM2nGroupAbort(void)|ncclM2nGroupAbort(int i)|"
                        + "function ncclM2nGroupAbort: ours ncclResult_t (), theirs ncclResult_t (int)",
                "M2N|ncclResult_t ncclM2nGroupAbort(void);|''|"
                        + "function ncclM2nGroupAbort is only in ours, which says NCCL M2N 0.2.0",
                "M2N|ncclResult_t ncclM2nGroupAbort(void);|ncclResult_t ncclM2nGroupAbort(void); void ncclM2nNew(int i);|"
                        + "function ncclM2nNew is not in ours",
                "M2N|int startRank;|long startRank;|field ncclMesh_t.startRank: ours int startRank, theirs long startRank",
                "M2N|int startRank;|long startRank;|size ncclMesh_t.startRank: ours 4, theirs 8",
                "M2N|int maxCta;|int odd; int maxCta;|offset ncclM2nConfig_t.maxCta: ours 16, theirs 20",
                "M2N|int maxCta;|int odd; int maxCta;|field ncclM2nConfig_t.odd is not in ours",
                "M2N|} ncclMesh_t;|} __attribute__((aligned(32))) ncclMesh_t;|alignof ncclMesh_t: ours 8, theirs 32",
                "M2N|API_MAGIC 0x4d324e32|API_MAGIC 0x4d324e33|"
                        + "constant NCCL_M2N_API_MAGIC: ours 1295142450, theirs 1295142451",
                "M2N|API_MAGIC 0x4d324e32|API_MAGIC 0x4d324e33|"
                        + "initial ncclM2nConfig_t.magic: ours 1295142450, theirs 1295142451",
                "M2N|NCCL_RESHARD_MESH_NDIMS 2|NCCL_RESHARD_MESH_NDIMS (NCCL_RESHARD_MAX_MESH_DIMS + 1)|"
                        + "constant NCCL_RESHARD_MESH_NDIMS: ours 2, theirs 3",
                "EP|NCCL_EP_ZERO_COPY_ON = 2|NCCL_EP_ZERO_COPY_ON = 3|"
                        + "enumerator NCCL_EP_ZERO_COPY_ON: ours 2, theirs 3",
                "EP|typedef int (*ncclEpFreeFn_t)(void* ptr|typedef int (*ncclEpFreeFn_t)(int ptr|"
                        + "type ncclEpFreeFn_t: ours int (*)(void*, void*), theirs int (*)(int, void*)",
                "EP|#define NCCL_EP_AUTO 0|#define NCCL_EP_OTHER 0|constant NCCL_EP_OTHER is not in ours",
                "EP|#define NCCL_EP_AUTO 0|#define NCCL_EP_OTHER 0|"
                        + "constant NCCL_EP_AUTO is only in ours, which names no newer release",
            })
    void plantedDifferenceIsReported(Extension extension, String old, String replacement, String expected)
            throws IOException {
        HeaderCheck.Report report = check(extension, with(extension, old, replacement));
        assertFalse(report.passed());
        assertTrue(
                report.differences().contains(new Difference(Difference.Kind.DIFFERENT, expected)),
                () -> String.join("\n", report.lines()));
    }

    /** As NVIDIA's header of EP is: enumerations in a file beside it, macros that make declarations, results of CUDA's type. */
    @Test
    void headerOfSeveralFilesWithMacrosIsEqual() throws IOException {
        String text = with(Extension.EP, "#include <nccl.h>", """
                #include <nccl.h>
                #include "nccl_ep/enums.h"
                #define NCCL_EP_STRUCT_INIT(type, number) ((type){.size = (unsigned int)sizeof(type), .magic = (number)})
                #define NCCL_EP_STATIC_ASSERT(condition) static_assert(condition, #condition)
                #define NCCL_EP_TENSOR_CURRENT_VERSION 1
                #define NCCL_EP_TENSOR_SIZE ((unsigned int)sizeof(ncclEpTensor_t))
                """)
                .replace(
                        "{ sizeof(ncclEpHandleConfig_t), NCCL_EP_MAGIC }",
                        "\\\n  NCCL_EP_STRUCT_INIT(ncclEpHandleConfig_t, NCCL_EP_MAGIC)\nNCCL_EP_STATIC_ASSERT(sizeof(int) == 4);")
                .replace("typedef int (*", "typedef cudaError_t (*")
                .replace("unsigned long rdma", "unsigned long int rdma")
                .replace(
                        "NCCL_EP_VERSION_CODE 200",
                        "NCCL_EP_VERSION_CODE (NCCL_EP_MAJOR * 10000 + NCCL_EP_MINOR * 100)");
        int start = text.indexOf("typedef enum");
        int end = text.indexOf("ncclEpAlgorithm_t;\n", start) + "ncclEpAlgorithm_t;\n".length();
        Files.writeString(
                Files.createDirectory(folder.resolve("nccl_ep")).resolve("enums.h"), text.substring(start, end));
        HeaderCheck.Report report = check(Extension.EP, text.substring(0, start) + text.substring(end));
        assertEquals(List.of(), report.differences());
        assertEquals(check(Extension.EP, text(Extension.EP)).compared(), report.compared());
    }

    @Test
    void additionsOfANewerReleaseAreNotFaults() throws IOException {
        HeaderCheck.Report report = check(
                Extension.M2N,
                with(Extension.M2N, "NCCL_M2N_MINOR 2", "NCCL_M2N_MINOR 3")
                        .replace("ncclM2nGroupAbort(void);", "ncclM2nGroupAbort(void); void ncclM2nNew(int a);"));
        assertEquals(
                List.of(new Difference(Difference.Kind.NEWER, "function ncclM2nNew is not in ours")),
                report.differences());
    }

    @Test
    void headersOfAFolderAreChecked() throws IOException {
        assertEquals(
                List.of("nccl.h", "nccl_m2n.h", "nccl_ep.h"),
                check(ours, "g++").stream().map(HeaderCheck.Report::file).toList());
        Files.delete(ours.resolve("nccl_m2n.h"));
        Path theirs = Files.createDirectory(folder.resolve("theirs"));
        Files.copy(HEADERS.resolve("nccl_ep.h"), theirs.resolve("nccl_ep.h"));
        assertEquals(
                List.of("nccl_ep.h"),
                check(theirs, "g++").stream().map(HeaderCheck.Report::file).toList());
    }

    @Test
    void nothingIsComparedWithoutACompiler() throws IOException {
        Path theirs = Files.writeString(folder.resolve("nccl_ep.h"), text(Extension.EP));
        HeaderCheck.Report report = check(theirs, "/nowhere/g++").get(0);
        assertEquals(0, report.compared());
        assertTrue(report.note().startsWith("no C++ compiler: "), report.note());
    }

    @Test
    void headerThatDoesNotCompileIsAFault() throws IOException {
        HeaderCheck.Report report =
                check(Extension.EP, with(Extension.EP, "#include <nccl.h>", "#include <nccl.h>\n#error broken"));
        assertFalse(report.passed());
        assertTrue(
                report.lines().get(0).contains("#error broken"), report.lines().toString());
    }

    @Test
    void releaseIsRequired() throws IOException {
        String text = with(Extension.EP, "#define NCCL_EP_PATCH 0\n", "");
        IllegalArgumentException failure =
                assertThrows(IllegalArgumentException.class, () -> check(Extension.EP, text));
        assertEquals(folder.resolve("nccl_ep.h") + " must define NCCL_EP_PATCH as a number", failure.getMessage());
    }
}
