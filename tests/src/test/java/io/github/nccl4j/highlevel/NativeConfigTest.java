package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.Field;
import io.github.nccl4j.nccl.ncclConfig_t;
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
        try (NativeConfig filled = new NativeConfig(config, NcclLibrary.get())) {
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
        try (NativeConfig filled = new NativeConfig(CommunicatorConfig.builder().build(), NcclLibrary.get())) {
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
        try (NativeConfig filled = new NativeConfig(config, NcclLibrary.get())) {
            name = filled.struct().commName().address();
        }
        try (NativeConfig again = new NativeConfig(config, NcclLibrary.get());
                NativeConfig other = new NativeConfig(
                        CommunicatorConfig.builder().commName("other").build(), NcclLibrary.get())) {
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
        try (NativeConfig filled = new NativeConfig(config, NcclLibrary.get());
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
}
