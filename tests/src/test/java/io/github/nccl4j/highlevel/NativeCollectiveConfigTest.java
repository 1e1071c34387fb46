package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.Field;
import io.github.nccl4j.internal.config.CollectiveConfigField;
import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import io.github.nccl4j.nccl.ncclConfigExt_t;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.PackagedHeader;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What NCCL is handed with a single collective: the struct, its texts and its list, and how long they are there. */
class NativeCollectiveConfigTest {
    private static ncclCollConfig_t structOf(CollectiveConfig config) {
        return new ncclCollConfig_t(new Address(config.call.struct(NcclLibrary.get())));
    }

    @Test
    void theTableOfReleasesIsThatOfTheHeader() {
        Map<String, String> header = new LinkedHashMap<>();
        for (Field field :
                PackagedHeader.parse().structs().get("ncclCollConfig_t").fields()) {
            if (!List.of("size", "magic", "version").contains(field.name())) {
                // What came with the struct has its release in a comment, or that of the struct.
                header.put(field.name(), "NCCL " + field.since().replace("NCCL ", ""));
            }
        }
        Map<String, String> table = new LinkedHashMap<>();
        Arrays.stream(CollectiveConfigField.values()).forEach(field -> table.put(field.cName, "NCCL " + field.since()));
        assertEquals(header, table);
    }

    @Test
    void everyFieldArrivesInItsPlace() {
        try (CudaEvent event = CudaEvent.create(Device.host())) {
            CollectiveConfig config = CollectiveConfig.builder()
                    .preferAlgorithm("Tree, ring+^ring_LL")
                    .minCtas(3)
                    .maxCtas(4)
                    .nvlsCtas(5)
                    .cgaClusterSize(6)
                    .ctaPolicy(CtaPolicy.ZERO)
                    .profilerTag(0x7fff_ffff_ffff_fff0L)
                    .launchCompletionEvent(event)
                    .build();
            ncclCollConfig_t struct = structOf(config);
            assertEquals("tree,ring+^ring_ll", struct.algSelection().getString());
            assertEquals(0, struct.forceAlgSelection());
            assertEquals(3, struct.minCTAs());
            assertEquals(4, struct.maxCTAs());
            assertEquals(5, struct.nvlsCTAs());
            assertEquals(6, struct.cgaClusterSize());
            assertEquals(CtaPolicy.ZERO.code(), struct.CTAPolicy());
            assertEquals(0x7fff_ffff_ffff_fff0L, struct.userProfilerTag());
            assertEquals(event.nativeHandle(), struct.launchCompletionEvent().address());
            assertNull(struct.ext());
            Reference.reachabilityFence(config);
        }
    }

    @Test
    void whatIsNotSetStaysUndefined() {
        CollectiveConfig config = CollectiveConfig.builder().build();
        ncclCollConfig_t struct = structOf(config);
        assertEquals(struct.sizeof(), struct.size());
        assertEquals(nccl.NCCL_API_MAGIC, struct.magic());
        assertEquals(nccl.NCCL_VERSION_CODE, struct.version());
        assertNull(struct.ext());
        assertEquals(nccl.NCCL_CONFIG_UNDEF_INT, struct.minCTAs());
        assertEquals(nccl.NCCL_CONFIG_UNDEF_INT, struct.maxCTAs());
        assertEquals(nccl.NCCL_CONFIG_UNDEF_INT, struct.nvlsCTAs());
        assertEquals(nccl.NCCL_CONFIG_UNDEF_INT, struct.cgaClusterSize());
        assertNull(struct.algSelection());
        assertEquals(1, struct.forceAlgSelection());
        assertEquals(nccl.NCCL_CONFIG_UNDEF_INT, struct.CTAPolicy());
        assertEquals(0, struct.userProfilerTag());
        assertNull(struct.launchCompletionEvent());
        Reference.reachabilityFence(config);
    }

    @Test
    void optionsOfVendorsAreAList() {
        CollectiveConfig config = CollectiveConfig.builder()
                .vendorOption(7, 1, -3)
                .vendorOption(7, 2, "schnéll")
                .vendorAddress(1 << 24 - 1, -1, 0x7fff_1234_5678L)
                .algorithm("ring")
                .build();
        ncclConfigExt_t first = structOf(config).ext();
        assertEquals(List.of(7, 1, -3), List.of(first.key_vendorId(), first.key_optionId(), first.val_i()));
        ncclConfigExt_t second = first.next();
        assertEquals(List.of(7, 2), List.of(second.key_vendorId(), second.key_optionId()));
        assertEquals("schnéll", second.val_s().getString(StandardCharsets.UTF_8));
        ncclConfigExt_t third = second.next();
        assertEquals(List.of(1 << 24 - 1, -1), List.of(third.key_vendorId(), third.key_optionId()));
        assertEquals(0x7fff_1234_5678L, third.val_raw().address());
        assertNull(third.next());
        assertEquals("ring", structOf(config).algSelection().getString());
        Reference.reachabilityFence(config);
    }

    @Test
    void theStructIsMadeOnce() {
        CollectiveConfig config = CollectiveConfig.algorithm("ring");
        assertEquals(config.call.struct(NcclLibrary.get()), config.call.struct(NcclLibrary.get()));
        // Equal ones have their own.
        assertTrue(config.call.struct(NcclLibrary.get())
                != CollectiveConfig.algorithm("ring").call.struct(NcclLibrary.get()));
    }

    /** As many configurations as a long training has steps. */
    @Test
    void whatIsDroppedIsFreed() throws InterruptedException {
        BufferPoolMXBean direct = ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
                .filter(pool -> pool.getName().equals("direct"))
                .findAny()
                .orElseThrow();
        System.gc();
        long before = direct.getCount();
        for (int step = 0; step < 10_000; step++) {
            CollectiveConfig.builder().profilerTag(step).build().call.struct(NcclLibrary.get());
        }
        Waiting.value(
                "at most 5000 buffers more than " + before,
                () -> {
                    System.gc();
                    return direct.getCount();
                },
                now -> now <= before + 5_000);
    }

    @Test
    void whatRanksCompareHasNoAddresses() {
        assertEquals("{}", CollectiveConfig.builder().build().call.signature());
        assertNull(CollectiveConfig.builder().build().call.cgaClusterSize());
        assertNull(CollectiveConfig.builder().build().call.launchCompletionEvent());
        try (CudaEvent event = CudaEvent.create(Device.host())) {
            CollectiveConfig config = CollectiveConfig.builder()
                    .cgaClusterSize(6)
                    .launchCompletionEvent(event)
                    .vendorOption(7, 2, 5)
                    .vendorOption(7, 1, "text")
                    .vendorAddress(7, 3, 4096)
                    .build();
            assertEquals(
                    "{ext=[7/1=text, 7/2=5, 7/3=an address], cgaClusterSize=6, launchCompletionEvent=set}",
                    config.call.signature());
            assertEquals(6, config.call.cgaClusterSize());
            assertSame(event.nativeEvent, config.call.launchCompletionEvent());
        }
    }

    @Test
    void differentConfigurationsHaveDifferentHashes() {
        assertNotEquals(
                CollectiveConfig.algorithm("ring").hashCode(),
                CollectiveConfig.algorithm("tree").hashCode());
        assertNotEquals(
                AlgorithmSelection.of("ring").hashCode(),
                AlgorithmSelection.of("tree").hashCode());
        assertNotEquals(AlgorithmSelection.of("ring"), AlgorithmSelection.of("tree"));
    }
}
