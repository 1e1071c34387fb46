package io.github.nccl4j.internal.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.testing.TestLog;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Warnings of faults that users of NCCL report: by library, configuration and memory. */
class ReportedFaultsTest {
    private static final Version OLD = new Version(2, 29, 2);
    private static final Version NEWER = new Version(2, 29, 3);

    @Test
    void oldLibrariesHangOnArm64() {
        assertEquals(
                "NCCL 2.29.2 may hang on arm64 when ranks communicate through a network; use NCCL 2.29.3 or newer"
                        + " (nccl4j explain NCCL4J-0135)",
                ReportedFaults.ofLibrary(Engine.NCCL, OLD, "aarch64"));
        assertNull(ReportedFaults.ofLibrary(Engine.NCCL, OLD, "amd64"));
        assertNull(ReportedFaults.ofLibrary(Engine.NCCL, NEWER, "aarch64"));
        assertNull(ReportedFaults.ofLibrary(Engine.HOST, OLD, "aarch64"));
    }

    @Test
    void theZeroPolicyHangsForTwoRanks() {
        Map<String, Object> zero =
                CommunicatorConfig.builder().ctaPolicy(CtaPolicy.ZERO).build().values();
        Map<String, Object> other = CommunicatorConfig.builder()
                .ctaPolicy(CtaPolicy.EFFICIENCY)
                .build()
                .values();
        assertNotNull(ReportedFaults.ofConfig(Engine.NCCL, OLD, zero));
        assertNull(ReportedFaults.ofConfig(Engine.NCCL, OLD, other));
        assertNull(ReportedFaults.ofConfig(Engine.NCCL, new Version(2, 31, 2), zero));
        assertNull(ReportedFaults.ofConfig(Engine.RCCL, OLD, zero));
    }

    @Test
    void aChildWithFewerNvlsCtasBreaksItsParent() {
        Map<String, Object> few =
                CommunicatorConfig.builder().nvlsCtas(1).build().values();
        assertNotNull(ReportedFaults.ofSplit(Engine.NCCL, few));
        assertNull(ReportedFaults.ofSplit(Engine.HOST, few));
        assertNull(ReportedFaults.ofSplit(Engine.NCCL, Map.of("maxCTAs", 1)));
    }

    @Test
    void windowsOfOneAllocationAreNotSafe() {
        assertNotNull(ReportedFaults.ofSharedMemory(Engine.NCCL, OLD));
        assertNull(ReportedFaults.ofSharedMemory(Engine.NCCL, new Version(2, 31, 2)));
        assertNull(ReportedFaults.ofSharedMemory(Engine.HOST, OLD));
    }

    @Test
    void eachWarningIsLoggedOnce() {
        try (TestLog log = new TestLog()) {
            ReportedFaults.warnOnce(null);
            ReportedFaults.warnOnce("one");
            ReportedFaults.warnOnce("one");
            ReportedFaults.warnOnce("two");
            assertEquals(List.of("WARNING: one", "WARNING: two"), log.lines());
        }
    }
}
