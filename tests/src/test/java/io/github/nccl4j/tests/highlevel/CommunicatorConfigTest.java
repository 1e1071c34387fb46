package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.header.Field;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CommunicatorConfig.Builder;
import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.HostCftMode;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NvlsHostMode;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.PackagedHeader;
import io.github.nccl4j.tests.StubLibraries;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Configurations: what they take, what they refuse, and what a library must know. */
class CommunicatorConfigTest {
    @TempDir
    static Path folder;

    private static CommunicatorConfig full() {
        return CommunicatorConfig.builder()
                .blocking(false)
                .cgaClusterSize(2)
                .minCtas(3)
                .maxCtas(4)
                .netName("Socket")
                .splitShare(true)
                .trafficClass(5)
                .commName("train")
                .collnetEnable(true)
                .ctaPolicy(CtaPolicy.ZERO)
                .shrinkShare(true)
                .nvlsCtas(6)
                .nChannelsPerNetPeer(7)
                .nvlinkCentricSched(true)
                .graphUsageMode(1)
                .numRmaCtx(0)
                .maxP2pPeers(8)
                .graphStreamOrdering(false)
                .launchOrderImplicit(false)
                .numRmaSig(0)
                .rmaEagerInit(true)
                .hostCftMode(HostCftMode.DISABLE)
                .nvlsHostMode(NvlsHostMode.DISABLE)
                .build();
    }

    @Test
    void everyFieldOfTheHeaderCanBeSet() {
        List<String> fields = PackagedHeader.parse().structs().get("ncclConfig_t").fields().stream()
                .map(Field::name)
                .filter(name -> !List.of("size", "magic", "version").contains(name))
                .toList();
        assertEquals(23, fields.size());
        assertEquals(fields, new ArrayList<>(full().values().keySet()));
        full().requireSupportedBy(NcclLibrary.get());
    }

    @Test
    void configurationsAreValues() {
        assertEquals(full(), full());
        assertEquals(full().hashCode(), full().hashCode());
        CommunicatorConfig small =
                CommunicatorConfig.builder().maxCtas(16).blocking(false).build();
        assertNotEquals(full(), small);
        assertEquals("CommunicatorConfig{blocking=false, maxCTAs=16}", small.toString());
        assertThrows(UnsupportedOperationException.class, () -> small.values().clear());
        assertTrue(CommunicatorConfig.builder().build().values().isEmpty());
    }

    @Test
    void laterBuilderCallsDoNotAffectConfiguration() {
        Builder builder = CommunicatorConfig.builder().maxCtas(1);
        CommunicatorConfig first = builder.build();
        builder.maxCtas(2);
        assertEquals(1, first.values().get("maxCTAs"));
        assertEquals(2, builder.build().values().get("maxCTAs"));
    }

    private static Arguments refused(Function<Builder, Builder> wrong, String message) {
        return Arguments.of(wrong, message);
    }

    static Stream<Arguments> wrongValues() {
        return Stream.of(
                refused(b -> b.cgaClusterSize(-1), "cgaClusterSize must be in 0..8: -1"),
                refused(b -> b.cgaClusterSize(9), "cgaClusterSize must be in 0..8: 9"),
                refused(b -> b.minCtas(0), "minCTAs must be >= 1: 0"),
                refused(b -> b.maxCtas(0), "maxCTAs must be >= 1: 0"),
                refused(b -> b.maxCtas(Integer.MIN_VALUE), "maxCTAs must be >= 1: -2147483648"),
                refused(b -> b.minCtas(4).maxCtas(3), "minCTAs must be <= maxCTAs: 4 > 3"),
                refused(b -> b.trafficClass(Integer.MIN_VALUE), "trafficClass must be >= -2147483647: -2147483648"),
                refused(b -> b.nvlsCtas(0), "nvlsCTAs must be >= 1: 0"),
                refused(b -> b.nChannelsPerNetPeer(0), "nChannelsPerNetPeer must be in 1..64: 0"),
                refused(b -> b.nChannelsPerNetPeer(65), "nChannelsPerNetPeer must be in 1..64: 65"),
                refused(b -> b.graphUsageMode(3), "graphUsageMode must be in 0..2: 3"),
                refused(b -> b.graphUsageMode(-1), "graphUsageMode must be in 0..2: -1"),
                refused(b -> b.numRmaCtx(-1), "numRmaCtx must be >= 0: -1"),
                refused(b -> b.maxP2pPeers(0), "maxP2pPeers must be >= 1: 0"),
                refused(
                        b -> b.graphStreamOrdering(false),
                        "graphStreamOrdering false needs graphUsageMode 0 or 1: graphUsageMode is 2, the default"),
                refused(
                        b -> b.graphStreamOrdering(false).graphUsageMode(2),
                        "graphStreamOrdering false needs graphUsageMode 0 or 1: graphUsageMode is 2"),
                refused(b -> b.numRmaSig(-1), "numRmaSig must be >= 0: -1"),
                refused(
                        b -> b.nvlsHostMode(NvlsHostMode.DISABLE_TRANSPORT, NvlsHostMode.ENABLE),
                        "nvlsHostMode ENABLE must be alone: [ENABLE, DISABLE_TRANSPORT]"),
                refused(b -> b.netName(" "), "netName must not be blank or have a NUL character: ' '"),
                refused(b -> b.commName("a\0b"), "commName must not be blank or have a NUL character: 'a\\0b'"));
    }

    @ParameterizedTest
    @MethodSource("wrongValues")
    void wrongValuesAreRefusedWithTheirRange(Function<Builder, Builder> wrong, String message) {
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> wrong.apply(CommunicatorConfig.builder())
                        .build());
        assertEquals(message, refusal.getMessage());
    }

    @Test
    void nullsAreRefused() {
        Builder builder = CommunicatorConfig.builder();
        assertThrows(NullPointerException.class, () -> builder.netName(null));
        assertThrows(NullPointerException.class, () -> builder.commName(null));
        assertThrows(NullPointerException.class, () -> builder.ctaPolicy(null));
        assertThrows(NullPointerException.class, () -> builder.hostCftMode(null));
        assertThrows(NullPointerException.class, () -> builder.nvlsHostMode(null));
        assertThrows(NullPointerException.class, () -> full().requireSupportedBy(null));
    }

    private static List<String> against(Path library) {
        ChildJvm.Outcome outcome =
                new ChildJvm().property("nccl4j.library", library).run(HighlevelScenarios.class, "config");
        assertEquals(0, outcome.exitCode(), outcome.output());
        return outcome.output().lines().toList();
    }

    @Test
    void anOldLibraryIsNamedWithTheReleaseThatIsNeeded() throws IOException {
        Path library = StubLibraries.small(folder, 21801);
        String loaded = ", loaded is NCCL 2.18.1 from " + library;
        List<String> output = against(library);
        List<String> expected = new ArrayList<>(List.of("ok"));
        for (String needs : List.of(
                "trafficClass needs NCCL 2.26.2",
                "commName needs NCCL 2.27.3",
                "CTAPolicy needs NCCL 2.27.3",
                "CTAPolicy ZERO needs NCCL 2.28.3",
                "nvlinkCentricSched needs NCCL 2.28.3",
                "numRmaCtx needs NCCL 2.29.2",
                "numRmaCtx 0 needs NCCL 2.30.7",
                "maxP2pPeers needs NCCL 2.30.3",
                "graphStreamOrdering needs NCCL 2.30.7",
                "minCTAs without maxCTAs needs NCCL 2.31.2",
                "numRmaSig needs NCCL 2.31.2",
                "nvlsHostMode needs NCCL 2.32.3")) {
            expected.add("NcclLibraryException: " + needs + loaded);
        }
        assertEquals(expected, output.subList(0, expected.size()));
    }

    @Test
    void ignoredFieldsAreLoggedAsWarning() throws IOException {
        Path library = StubLibraries.small(folder, 22703);
        List<String> output = against(library);
        // The JDK translates the level.
        String warning =
                Level.WARNING.getLocalizedName() + ": maxP2pPeers needs NCCL 2.30.3, loaded is NCCL 2.27.3 from "
                        + library + ": left out (nccl4j explain NCCL4J-0002)";
        assertEquals(List.of(warning, "ok"), output.subList(output.size() - 2, output.size()));
    }

    @Test
    void eachLibraryTakesWhatItKnows() throws IOException {
        assertEquals(4, taken(22703));
        assertEquals(6, taken(22803));
        assertEquals(7, taken(22902));
        assertEquals(8, taken(23003));
        assertEquals(10, taken(23007));
        assertEquals(12, taken(23102));
        assertEquals(13, taken(23203));
        // VCCL's own version is one of 2.26.
        assertEquals(2, taken(22662));
    }

    /** How many of the scenario's configurations are taken, but for the one that ignores what is not. */
    private static long taken(int versionCode) throws IOException {
        return against(StubLibraries.small(folder, versionCode)).stream()
                        .filter("ok"::equals)
                        .count()
                - 1;
    }
}
