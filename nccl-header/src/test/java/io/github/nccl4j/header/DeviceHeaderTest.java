package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The check of nccl_device.h finds the differences that the tests plant in an installation made of our header, as C++. */
class DeviceHeaderTest {
    /** Our header with device code added, in the spellings of real headers. */
    private static final String KERNELS = """
            #pragma once
            template <typename T> struct ncclSymPtr;
            template <typename T> struct ncclOther { T one; inline T get() { return one; } };
            struct ncclTeamTagWorld {};
            extern "C" inline int ncclTeamTwice(int a);
            extern "C" inline int ncclTeamTwice(int a) { return 2 * a; }
            """;

    @TempDir
    private Path folder;

    private HeaderCheck.Report check(String old, String replacement) throws Exception {
        return check(Files.readString(OurHeader.FILE), old, replacement);
    }

    private HeaderCheck.Report check(String nccl, String old, String replacement) throws Exception {
        install(nccl, old, replacement);
        return OurHeader.check().checkDevice(folder).orElseThrow();
    }

    private void install(String nccl, String old, String replacement) throws Exception {
        String text = Files.readString(OurHeader.DEVICE);
        // C++ uses the tags, and declares several fields together.
        text = text.replace("typedef struct ncclTeam {\n  int nRanks;\n  int rank;\n  int stride;\n} ncclTeam_t;", """
                struct ncclTeam; typedef struct ncclTeam ncclTeam_t;
                struct ncclTeam { int nRanks, rank, stride; };""")
                .replace(
                        "typedef uint32_t ncclCftLeId_t;",
                        "typedef uint32_t ncclCftLeId;\ntypedef ncclCftLeId ncclCftLeId_t;")
                .replace("ncclCftLeId_t* leId", "ncclCftLeId* leId")
                .replace("const ncclDevComm_t* devComm", "ncclDevComm_t const* devComm")
                .replace("ncclCftTeamMode_t mode)", "ncclCftTeamMode_t mode = NCCL_CFT_TEAM_FLAT)")
                .replace("#ifdef __cplusplus\nextern \"C\" {\n#endif", "")
                .replace("#ifdef __cplusplus\n}\n#endif", "")
                .replaceAll("(?m)^((?:ncclResult_t|ncclTeam_t|int) nccl)", "extern \"C\" __host__ $1");
        if (!old.isEmpty()) {
            assertTrue(text.contains(old), old);
            text = text.replace(old, replacement);
        }
        Path parts = Files.createDirectories(folder.resolve("nccl_device/impl"));
        Files.writeString(folder.resolve("nccl.h"), nccl);
        Files.writeString(folder.resolve("nccl_device.h"), "#include \"nccl_device/host.h\"\n");
        Files.writeString(parts.resolve("comm__types.h"), KERNELS);
        Files.writeString(folder.resolve("nccl_device/host.h"), "#include \"core.h\"\n");
        Files.writeString(folder.resolve("nccl_device/core.h"), text);
    }

    @Test
    void ourHeaderEqualsItselfInOtherSpellings() throws Exception {
        HeaderCheck.Report report = check("", "");
        assertEquals(1, report.lines().size(), report.lines().toString());
        assertEquals(
                "nccl_device.h 2.32.3: 0 differences, 124 declarations compared",
                report.lines().get(0));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "ncclTeamRail(ncclComm_t comm)|ncclTeamRail(ncclComm_t comm, int a)|"
                        + "function ncclTeamRail: ours ncclTeam_t (ncclComm_t), theirs ncclTeam_t (ncclComm_t, int)",
                "extern \"C\" __host__ ncclTeam_t ncclTeamRail(ncclComm_t comm);|''|"
                        + "function ncclTeamRail is only in ours, which says NCCL 2.28.3",
                "extern \"C\" __host__ ncclTeam_t ncclTeamRail|extern \"C\" int ncclTeamNew(int a); "
                        + "extern \"C\" ncclTeam_t ncclTeamRail|function ncclTeamNew is not in ours",
                "int nRanks, rank, stride;|int rank, nRanks, stride;|offset ncclTeam_t.rank: ours 4, theirs 0",
                "int nRanks, rank, stride;|int nRanks, rank, stride, more;|field ncclTeam_t.more is not in ours",
                "int nRanks, rank, stride;|int nRanks, rank, stride, more;|"
                        + "sizeof ncclTeam_t is 16, expected 12 from the fields in ours",
                "bool cftCountedSupport;|int cftCountedSupport;|field ncclCommProperties_t.cftCountedSupport:"
                        + " ours bool cftCountedSupport, theirs int cftCountedSupport",
                "ginSupport[64]|ginSupport[32]|size ncclCommProperties_t.ginSupport: ours 64, theirs 32",
                "4, /* ginContextCount */|5, /* ginContextCount */|"
                        + "initial ncclDevCommRequirements_t.ginContextCount: ours 4, theirs 5",
                "uint64_t content[30];|uint64_t content[31];|sizeof ncclDevComm_t is 256, more than ours, 248",
                "NCCL_GIN_TYPE_GDAKI = 3|NCCL_GIN_TYPE_GDAKI = 1|enumerator NCCL_GIN_TYPE_GDAKI: ours 3, theirs 1",
                "typedef uint32_t ncclGinSignal_t;|typedef int ncclGinSignal_t;|"
                        + "type ncclGinSignal_t: ours uint32_t, theirs int",
            })
    void plantedDifferenceIsReported(String old, String replacement, String expected) throws Exception {
        HeaderCheck.Report report = check(old, replacement);
        assertFalse(report.passed());
        List<String> found = report.differences().stream().map(Difference::text).toList();
        assertTrue(found.contains(expected), () -> String.join("\n", report.lines()));
    }

    /** Programs allocate them by our header, and only kernels know their fields. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "uint64_t content[30];|uint32_t other[58];",
                "ncclGinSignal_t signal0;|int signal0;",
            })
    void fieldsOfAnOpaqueStructureMayDifferIfItIsNotLarger(String old, String replacement) throws Exception {
        HeaderCheck.Report report = check(old, replacement);
        assertEquals(List.of(), report.differences());
    }

    /** Headers of the release in our comments, and of an earlier release. */
    @ParameterizedTest
    @CsvSource({"2.32.3, 0", "2.32.2, 3", "2.29.6, 2", "2.33.1, 0"})
    void releasesInOurCommentsAreVerified(String release, int differences) throws Exception {
        String[] numbers = release.split("\\.");
        String nccl = Files.readString(OurHeader.FILE)
                .replace("#define NCCL_MINOR 32", "#define NCCL_MINOR " + numbers[1])
                .replace("#define NCCL_PATCH 3", "#define NCCL_PATCH " + numbers[2]);
        HeaderCheck.Report report = check(nccl, "", "");
        long early = report.differences().stream()
                .filter(difference -> difference.text().contains("is in theirs, but ours says"))
                .count();
        assertTrue(differences == 2 ? early > 20 : early == differences, () -> String.join("\n", report.lines()));
    }

    @Test
    void additionOfANewerReleaseIsNotAFault() throws Exception {
        String nccl = Files.readString(OurHeader.FILE).replace("#define NCCL_MINOR 32", "#define NCCL_MINOR 33");
        HeaderCheck.Report report = check(nccl, "uint64_t content[30];", "uint64_t content[40];");
        assertTrue(report.passed(), () -> String.join("\n", report.lines()));
        assertEquals(1, report.differences().size());
    }

    @Test
    void missingDeviceHeaderGivesNoReport() throws Exception {
        Files.writeString(folder.resolve("nccl.h"), Files.readString(OurHeader.FILE));
        assertEquals(Optional.empty(), OurHeader.check().checkDevice(folder));
        assertEquals(1, OurHeader.check().checkAll(folder).size());
    }

    @Test
    void comparesNothingWithoutACompiler() throws Exception {
        install(Files.readString(OurHeader.FILE), "", "");
        HeaderCheck.Report report =
                OurHeader.check("/none/g++").checkDevice(folder).orElseThrow();
        assertTrue(report.passed());
        assertEquals(0, report.compared());
        assertTrue(report.note().contains("NCCL4J_CXX"), report.note());
    }

    @Test
    void headerThatDoesNotCompileIsADifference() throws Exception {
        HeaderCheck.Report report = check("typedef uint32_t ncclGinSignal_t;", "typedef nothing ncclGinSignal_t;");
        assertFalse(report.passed());
        String text = String.join("\n", report.lines());
        assertTrue(text.contains("different: does not compile: "), text);
    }
}
