package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The check finds exactly the differences that the tests plant in copies of our header. */
class HeaderCheckTest {
    @TempDir
    private Path folder;

    private HeaderCheck.Report check(String theirs) throws Exception {
        return check(theirs, OurHeader.check());
    }

    private HeaderCheck.Report check(String theirs, HeaderCheck check) throws Exception {
        return check.check(Files.writeString(folder.resolve("nccl.h"), theirs));
    }

    @Test
    void ourHeaderEqualsItself() throws Exception {
        HeaderCheck.Report report = check(OurHeader.text());
        assertTrue(report.passed());
        assertEquals(1, report.lines().size(), report.lines().toString());
        assertTrue(report.lines().get(0).startsWith("nccl.h 2.32.3: 0 differences, "));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "ncclResult_t ncclCommResume(ncclComm_t comm);|ncclResult_t ncclCommResume(int comm);|"
                        + "function ncclCommResume: ours ncclResult_t (ncclComm_t), theirs ncclResult_t (int)",
                "ncclResult_t ncclCommResume(ncclComm_t comm);|void ncclCommResume(ncclComm_t comm);|"
                        + "function ncclCommResume: ours ncclResult_t (ncclComm_t), theirs void (ncclComm_t)",
                "ncclResult_t ncclCommResume(ncclComm_t comm);|''|"
                        + "function ncclCommResume is only in ours, which says NCCL 2.29.7",
                "ncclResult_t ncclCommResume(ncclComm_t comm);|ncclResult_t ncclCommResume(ncclComm_t c); void ncclNew(int i);|"
                        + "function ncclNew is not in ours",
                "int shrinkShare; |''|field ncclConfig_t.shrinkShare is only in ours, which says NCCL 2.27.3",
                "int trafficClass; |long trafficClass;|"
                        + "field ncclConfig_t.trafficClass: ours int trafficClass, theirs long trafficClass",
                "int trafficClass; |long trafficClass;|size ncclConfig_t.trafficClass: ours 4, theirs 8",
                "int ctx;|int odd; int ctx;|field ncclWaitSignalDesc_t.odd is not in ours",
                "int ctx;|int odd; int ctx;|offset ncclWaitSignalDesc_t.ctx: ours 12, theirs 16",
                "#define NCCL_UNIQUE_ID_BYTES 128|#define NCCL_UNIQUE_ID_BYTES 256|"
                        + "constant NCCL_UNIQUE_ID_BYTES: ours 128, theirs 256",
                "#define NCCL_UNIQUE_ID_BYTES 128|#define NCCL_UNIQUE_ID_BYTES 256|"
                        + "sizeof ncclUniqueId is 256, expected 128 from the fields in ours",
                "} ncclUniqueId;|} __attribute__((aligned(16))) ncclUniqueId;|alignof ncclUniqueId: ours 1, theirs 16",
                "#define NCCL_API_MAGIC 0xcafebeef|#define NCCL_API_MAGIC 0xcafebabe|"
                        + "initial ncclConfig_t.magic: ours 3405692655, theirs 3405691582",
                "0x74685283|0x74685284|initial ncclSimInfo_t.magic: ours 1952993923, theirs 1952993924",
                "X) * 10000|X) * 100000|NCCL_VERSION(2, 32, 3): ours 23203, theirs 203203",
                "ncclScalarDevice = 0|ncclScalarDevice = 1|enumerator ncclScalarDevice: ours 0, theirs 1",
                "ncclNumResults = 9|ncclNumResults = 10|"
                        + "enumerator ncclNumResults is 10, expected 9 from the comments in ours",
                "int optionId;|long optionId;|"
                        + "field ncclConfigExt_t.key.optionId: ours int key.optionId, theirs long key.optionId",
                "int optionId;|long optionId;|offset ncclConfigExt_t.key.optionId: ours 12, theirs 16",
                "void* raw;|void* raw; double d;|field ncclConfigExt_t.val.d is not in ours",
                "1, /* forceAlgSelection */|0, /* forceAlgSelection */|"
                        + "initial ncclCollConfig_t.forceAlgSelection: ours 1, theirs 0",
                "struct ncclComm*|struct ncclCommunicator*|"
                        + "type ncclComm_t: ours struct ncclComm*, theirs struct ncclCommunicator*",
            })
    void plantedDifferenceIsReported(String old, String replacement, String expected) throws Exception {
        HeaderCheck.Report report = check(OurHeader.with(old, replacement));
        assertFalse(report.passed());
        assertTrue(
                report.differences().contains(new Difference(Difference.Kind.DIFFERENT, expected)),
                () -> String.join("\n", report.lines()));
    }

    @Test
    void swappedFieldsAreReported() throws Exception {
        HeaderCheck.Report report = check(OurHeader.with("int numRmaCtx; ", "int maxP2pPeers;")
                .replaceFirst("int maxP2pPeers;( +/\\* 2.30.3: from 1 \\*/)", "int numRmaCtx;$1"));
        assertTrue(
                report.lines().stream().anyMatch(line -> line.contains("order of the fields of ncclConfig_t")),
                () -> String.join("\n", report.lines()));
    }

    @Test
    void swappedEnumeratorsAreReported() throws Exception {
        HeaderCheck.Report report =
                check(OurHeader.with("ncclMax = 2,", "ncclMin = 2,").replaceFirst("ncclMin = 3,", "ncclMax = 3,"));
        assertEquals(2, report.differences().size(), report.lines().toString());
        assertFalse(report.passed());
    }

    @Test
    void releasesInOurCommentsAreVerified() throws Exception {
        HeaderCheck.Report report = check(OurHeader.with("NCCL_MINOR 32", "NCCL_MINOR 29"));
        assertTrue(report.lines().stream()
                .anyMatch(line ->
                        line.endsWith("function ncclParamGet is in theirs, but ours says that 2.30.4 added it")));
        assertTrue(report.lines().stream()
                .anyMatch(
                        line -> line.endsWith("enumerator ncclNumResults is 9, expected 8 from the comments in ours")));
    }

    @Test
    void additionsOfANewerReleaseAreNotFaults() throws Exception {
        HeaderCheck.Report report = check(OurHeader.with("NCCL_MINOR 32", "NCCL_MINOR 33")
                .replace("void ncclParamDumpAll(void);", "void ncclParamDumpAll(void); void ncclNew(int a);")
                .replace("ncclNumResults = 9", "ncclAnother = 9, ncclNumResults = 10"));
        assertTrue(report.passed(), report.lines().toString());
        assertTrue(report.lines().contains("nccl.h 2.33.3: newer than nccl4j: function ncclNew is not in ours"));
        assertEquals(3, report.differences().size(), report.lines().toString());
    }

    @Test
    void headerThatDoesNotCompileIsAFault() throws Exception {
        HeaderCheck.Report report = check(OurHeader.with("#include <stddef.h>", "#include <stddef.h>\n#error broken"));
        assertFalse(report.passed());
        assertTrue(
                report.lines().get(0).contains("#error broken"), report.lines().toString());
    }

    @Test
    void comparesDeclarationsWithoutACompiler() throws Exception {
        HeaderCheck.Report report =
                check(OurHeader.with("ncclScalarDevice = 0", "ncclScalarDevice = 1"), OurHeader.check("/nowhere/g++"));
        assertEquals(1, report.differences().size(), report.lines().toString());
        assertTrue(report.lines().get(1).contains("layouts not compared: no C++ compiler: "));
    }
}
