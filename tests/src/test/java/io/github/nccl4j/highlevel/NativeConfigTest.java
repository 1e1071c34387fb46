package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.Field;
import io.github.nccl4j.internal.config.ConfigField;
import io.github.nccl4j.internal.config.NativeConfig;
import io.github.nccl4j.internal.failure.Status;
import io.github.nccl4j.nccl.ncclConfig_t;
import io.github.nccl4j.testing.TestLog;
import io.github.nccl4j.tests.PackagedHeader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;
import org.junit.jupiter.api.Test;

/** What NCCL is handed: the struct, its strings, and the table of releases. */
class NativeConfigTest {
    private static Map<String, Field> fields() {
        Map<String, Field> fields = new LinkedHashMap<>();
        for (Field field : PackagedHeader.parse().structs().get("ncclConfig_t").fields()) {
            fields.put(field.name(), field);
        }
        fields.keySet().removeAll(List.of("size", "magic", "version"));
        return fields;
    }

    @Test
    void theTableOfReleasesIsThatOfTheHeader() {
        Map<String, String> table = new LinkedHashMap<>();
        Arrays.stream(ConfigField.values()).forEach(field -> table.put(field.cName, "NCCL " + field.since()));
        Map<String, String> header = new LinkedHashMap<>();
        fields().forEach((name, field) -> header.put(name, field.since()));
        assertEquals(header, table);
    }

    @Test
    void everyFieldIsWrittenAtItsOffset() throws ReflectiveOperationException {
        CommunicatorConfig config = CommunicatorConfig.builder()
                .blocking(false)
                .cgaClusterSize(2)
                .minCtas(3)
                .maxCtas(4)
                .netName("Sockét")
                .splitShare(true)
                .trafficClass(5)
                .commName("träin")
                .collnetEnable(true)
                .ctaPolicy(CtaPolicy.ZERO)
                .shrinkShare(false)
                .nvlsCtas(6)
                .nChannelsPerNetPeer(7)
                .nvlinkCentricSched(true)
                .graphUsageMode(1)
                .numRmaCtx(9)
                .maxP2pPeers(8)
                .graphStreamOrdering(false)
                .launchOrderImplicit(true)
                .numRmaSig(10)
                .rmaEagerInit(true)
                .hostCftMode(HostCftMode.FALLBACK)
                .nvlsHostMode(NvlsHostMode.DISABLE_TRANSPORT, NvlsHostMode.DISABLE_SYMMETRIC_MULTIMEM)
                .build();
        try (NativeConfig filled = new NativeConfig(config.supportedBy(NcclLibrary.get()))) {
            for (Map.Entry<String, Object> set : config.values().entrySet()) {
                Object written = ncclConfig_t.class.getMethod(set.getKey()).invoke(filled.struct());
                Object expected = set.getValue();
                if (expected instanceof Boolean flag) {
                    expected = flag ? 1 : 0;
                } else if (expected instanceof CtaPolicy policy) {
                    expected = policy.code();
                } else if (expected instanceof HostCftMode mode) {
                    expected = mode.code();
                } else if (expected instanceof Set<?>) {
                    expected = 3;
                } else if (expected instanceof String) {
                    written = ((BytePointer) written).getString(StandardCharsets.UTF_8);
                }
                assertEquals(expected, written, set.getKey());
            }
        }
    }

    @Test
    void unsetFieldsStayUndefined() throws ReflectiveOperationException {
        try (NativeConfig filled =
                new NativeConfig(CommunicatorConfig.builder().build().supportedBy(NcclLibrary.get()))) {
            assertEquals(nccl.NCCL_API_MAGIC, filled.struct().magic());
            for (Field field : fields().values()) {
                Object value = ncclConfig_t.class.getMethod(field.name()).invoke(filled.struct());
                assertEquals(field.type().equals("int") ? nccl.NCCL_CONFIG_UNDEF_INT : null, value, field.name());
            }
        }
    }

    @Test
    void theNameOfACommunicatorOutlivesTheStruct() {
        CommunicatorConfig config = CommunicatorConfig.builder()
                .commName("outlives")
                .netName("dies")
                .build();
        long name;
        try (NativeConfig filled = new NativeConfig(config.supportedBy(NcclLibrary.get()))) {
            name = filled.struct().commName().address();
        }
        try (NativeConfig again = new NativeConfig(config.supportedBy(NcclLibrary.get()));
                NativeConfig other = new NativeConfig(
                        CommunicatorConfig.builder().commName("other").build().supportedBy(NcclLibrary.get()))) {
            assertEquals(name, again.struct().commName().address());
            assertEquals("outlives", again.struct().commName().getString(StandardCharsets.UTF_8));
            assertNotEquals(name, other.struct().commName().address());
            assertNull(other.struct().netName());
        }
    }

    @Test
    void hostEngineAcceptsConfiguration() {
        CommunicatorConfig config = CommunicatorConfig.builder()
                .minCtas(1)
                .maxCtas(4)
                .commName("one rank")
                .build();
        try (NativeConfig filled = new NativeConfig(config.supportedBy(NcclLibrary.get()));
                PointerPointer<BytePointer> cell = new PointerPointer<>(1);
                BytePointer id = new BytePointer(UniqueId.BYTES)) {
            id.put(UniqueId.create().toBytes());
            int result = nccl.ncclCommInitRankConfig(
                    cell.address(), 1, id.address(), 0, filled.struct().address());
            Status.check(result, "ncclCommInitRankConfig");
            long communicator = cell.get().address();
            assertTrue(communicator != 0);
            Status.check(nccl.ncclCommDestroy(communicator), "ncclCommDestroy");
        }
    }

    private static final Version OLD = new Version(2, 18, 1);

    private static void unsupported(CommunicatorConfig config, Version version, String message) {
        NcclLibraryException refused =
                assertThrows(NcclLibraryException.class, () -> config.supportedBy(version, "the library"));
        assertEquals(message + ", loaded is the library", refused.getMessage());
    }

    @Test
    void aReleaseIsNamedThatAnOldLibraryLacks() {
        CommunicatorConfig alone = CommunicatorConfig.builder().minCtas(2).build();
        unsupported(alone, OLD, "minCTAs without maxCTAs needs NCCL " + ConfigField.MIN_CTAS_ALONE);
        CommunicatorConfig both =
                CommunicatorConfig.builder().minCtas(2).maxCtas(2).build();
        assertEquals(Map.of(ConfigField.MIN_CTAS, 2, ConfigField.MAX_CTAS, 2), both.supportedBy(OLD, "the library"));
        assertEquals(Map.of(ConfigField.MIN_CTAS, 2), alone.supportedBy(ConfigField.MIN_CTAS_ALONE, "the library"));
        CommunicatorConfig named = CommunicatorConfig.builder().commName("name").build();
        unsupported(named, OLD, "commName needs NCCL " + ConfigField.COMM_NAME.since());
        // The value needs a newer release than its field.
        CommunicatorConfig none = CommunicatorConfig.builder().numRmaCtx(0).build();
        unsupported(none, ConfigField.NUM_RMA_CTX.since(), "numRmaCtx 0 needs NCCL 2.30.7");
    }

    @Test
    void theReleaseOfAValueMayBeNewerThanThatOfItsField() {
        assertEquals(new Version(2, 30, 7), ConfigField.NUM_RMA_CTX.since(0));
        assertEquals(ConfigField.NUM_RMA_CTX.since(), ConfigField.NUM_RMA_CTX.since(1));
        assertEquals(ConfigField.GRAPH_USAGE_MODE.since(), ConfigField.GRAPH_USAGE_MODE.since(0));
        for (CtaPolicy policy : CtaPolicy.values()) {
            assertEquals(policy.since(), ConfigField.CTA_POLICY.since(policy));
        }
    }

    @Test
    void fieldsThatAreIgnoredAreLogged() {
        CommunicatorConfig config = CommunicatorConfig.builder()
                .commName("name")
                .maxCtas(2)
                .ignoreUnsupported()
                .build();
        try (TestLog log = new TestLog()) {
            assertEquals(Map.of(ConfigField.MAX_CTAS, 2), config.supportedBy(OLD, "the library"));
            assertEquals(
                    List.of("WARNING: commName needs NCCL " + ConfigField.COMM_NAME.since()
                            + ", loaded is the library: left out (nccl4j explain NCCL4J-0002)"),
                    log.lines());
        }
    }

    @Test
    void equalLimitsAndSingleModesAreTaken() {
        Map<String, Object> values = CommunicatorConfig.builder()
                .minCtas(3)
                .maxCtas(3)
                .nvlsHostMode(NvlsHostMode.ENABLE)
                .build()
                .values();
        assertEquals(Map.of("minCTAs", 3, "maxCTAs", 3, "nvlsHostMode", Set.of(NvlsHostMode.ENABLE)), values);
        assertThrows(IllegalArgumentException.class, () -> CommunicatorConfig.builder()
                .commName("\0name"));
        // Maps of configurations need hashes that differ.
        assertNotEquals(
                CommunicatorConfig.builder().maxCtas(3).build().hashCode(),
                CommunicatorConfig.builder().minCtas(3).build().hashCode());
    }
}
